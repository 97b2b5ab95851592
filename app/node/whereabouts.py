"""Where a node's swarm comes from: what the owner named, or what is found when nothing was named."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from app.node.errors import UsageError
from app.node.swarming import Find
from app.swarm.invite import Invite, InviteError, where


def given(texts: Sequence[str]) -> Find:
    """Addresses and invite links from the command line. Raises UsageError."""
    try:
        invites = [where(text) for text in texts]
    except InviteError as error:
        raise UsageError(str(error)) from error

    @asynccontextmanager
    async def find() -> AsyncIterator[Sequence[Invite]]:
        yield invites

    return find
