"""Which swarm a node joins: the one its owner named, or one that it finds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from app.node.record.errors import UsageError
from app.swarm.invite.invite import Invite, InviteError, where
from app.swarm.invite.private import Private, joining


@dataclass(frozen=True)
class Joins:
    """How to join. Without `invites`: the last relay, one on this network, or one that this node hosts."""

    invites: tuple[Invite, ...]
    private: Private | None

    @classmethod
    def named(cls, relays: Sequence[str], private: Private | None) -> Joins:
        """Parses addresses and invite links. Raises UsageError."""
        try:
            invites = [where(text) for text in relays]
        except InviteError as error:
            raise UsageError(str(error)) from error
        return cls(
            invites=tuple(one if private is None else joining(private, one) for one in invites), private=private
        )

    def find(self, home: Path, say: Callable[[str], None]) -> AbstractAsyncContextManager[Sequence[Invite]]:
        """See `app.node.swarm.member.Find`."""
        if self.invites:
            return _these(self.invites)
        from app.node.swarm.choice import anywhere

        return anywhere(home, private=self.private, say=say)()


@asynccontextmanager
async def _these(invites: Sequence[Invite]) -> AsyncIterator[Sequence[Invite]]:
    yield invites
