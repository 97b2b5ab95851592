"""Chooses the swarm that a node joins: the one its owner named, else its last relay, one on this network, or
its own.

`choose` is the pure decision; `find_or_host` searches, decides, and hosts a relay if that is the decision.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import urllib.parse
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from app.node.record.errors import UsageError
from app.node.swarm.hosting import Hosting, HostingError, own_relays
from app.node.swarm.member import Find
from app.swarm.client.places import FILE, KnownRelays
from app.swarm.invite.invite import Invite, InviteError, invite_from_text
from app.swarm.invite.private import PrivateSwarm, private_invite
from app.swarm.membership import NowhereError

if TYPE_CHECKING:
    from app.swarm.invite.discovery import FoundRelay

REACH_S = 2.0  # a relay that is there answers sooner


@dataclass(frozen=True)
class SwarmToJoin:
    """The owner's choice of swarm. Without `invites`: the last relay, one on this network, or one that this
    node hosts."""

    invites: tuple[Invite, ...]
    private: PrivateSwarm | None

    @classmethod
    def named(cls, relays: Sequence[str], private: PrivateSwarm | None) -> SwarmToJoin:
        """Parses addresses and invite links. Raises UsageError."""
        try:
            invites = [invite_from_text(text) for text in relays]
        except InviteError as error:
            raise UsageError(str(error)) from error
        return cls(
            invites=tuple(one if private is None else private_invite(private, one) for one in invites),
            private=private,
        )

    def find(self, home: Path, say: Callable[[str], None]) -> AbstractAsyncContextManager[Sequence[Invite]]:
        """Finds the swarm; see `app.node.swarm.member.Find`."""
        if self.invites:
            return _these(self.invites)
        return find_or_host(home, private=self.private, say=say)()


@asynccontextmanager
async def _these(invites: Sequence[Invite]) -> AsyncIterator[Sequence[Invite]]:
    yield invites


class SwarmChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A chosen swarm and where it comes from. `invites`: relays to try; empty for `host`."""

    source: Literal["named", "remembered", "network", "host"]
    invites: tuple[Invite, ...] = ()


def choose(
    *,
    named: Sequence[Invite] = (),
    remembered: Invite | None = None,
    reached: bool = False,
    found: Sequence[FoundRelay] = (),
    private: PrivateSwarm | None = None,
) -> SwarmChoice:
    """Chooses a swarm: the named relay; else the last relay, if it was `reached` at its address, is on the
    internet (where it will be back), announces itself under another address, or is a class's; else the first
    on this network; else a new one hosted here.

    Anybody can announce anything, so an announcement never overrides a relay that still answers at its address.
    Holders of a private swarm's words join only that swarm; others skip relays that demand more than proof of
    work.
    """
    if named:
        return SwarmChoice(source="named", invites=tuple(named))
    if private is None:
        found = [one for one in found if not one.private]
    else:
        found = [one for one in found if one.invite.swarm == private.swarm]
        remembered = remembered if remembered is not None and remembered.swarm == private.swarm else None
    if remembered is not None:
        if reached or not on_a_network(remembered):
            return SwarmChoice(source="remembered", invites=(_with(private, remembered),))
        again = [
            _with(private, msgspec.structs.replace(one.invite, room=remembered.room))
            for one in found
            if one.invite.relay == remembered.relay
        ]
        if again:
            return SwarmChoice(source="remembered", invites=(*again, _with(private, remembered)))
        if remembered.room is not None:
            return SwarmChoice(source="remembered", invites=(_with(private, remembered),))
    if found:
        return SwarmChoice(source="network", invites=(_with(private, found[0].invite),))
    return SwarmChoice(source="host")


def older_relay(own: Invite, found: Sequence[FoundRelay]) -> Invite | None:
    """Returns the relay to join if several computers began to host at about the same time: all join the oldest.
    None for its host, and for a computer that does not hear its own announcement."""
    same = [one for one in found if one.invite.swarm == own.swarm]
    ours = next((one for one in same if one.invite.relay == own.relay), None)
    first = min(same, key=lambda one: (one.since_ms, one.invite.relay or ""), default=None)
    return None if first is None or ours is None or first is ours else first.invite


def on_a_network(invite: Invite) -> bool:
    """Whether an address belongs to a local network, and so is useless outside it."""
    host = (urllib.parse.urlsplit(invite.url).hostname or "").rstrip(".")
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith(".local")


def find_or_host(
    home: Path,
    *,
    private: PrivateSwarm | None = None,
    say: Callable[[str], None],
    host: bool = True,
) -> Find:
    """Returns a context manager that looks for a swarm when entered, which takes 2 seconds, or longer if it has
    to host one; a hosted relay runs while the context is open. `say` gets sentences for the owner. Entering
    raises NowhereError."""

    @asynccontextmanager
    async def find() -> AsyncIterator[Sequence[Invite]]:
        remembered = last_relay(home)
        near = remembered is None or on_a_network(remembered) or private is not None
        reached, found = await asyncio.gather(_reaches(remembered), _look(say) if near else _nothing())
        choice = choose(remembered=remembered, reached=reached, found=found, private=private)
        if choice.source != "host":
            if choice.source == "network":
                say(_found(choice.invites[0], private))
            yield choice.invites
            return
        if not host:
            raise NowhereError("No swarm was found on this network: name one with --relay.")
        try:
            hosting = await Hosting.start(home, private=private, say=say)
        except HostingError as error:
            raise NowhereError(str(error)) from error
        try:
            other = older_relay(hosting.own, [one for one in await _look(say) if not one.private or private])
            if other is not None:
                await hosting.close()
                say(_found(other, private))
                yield (_with(private, other),)
                return
            say(hosting.sentence)
            watching = asyncio.create_task(hosting.watch())
            try:
                yield (hosting.own,)
            finally:
                watching.cancel()
                await asyncio.wait({watching})
        finally:
            await hosting.close()

    return find


def last_relay(home: Path) -> Invite | None:
    """Returns the relay of another computer that this node used last; None if it used no other."""
    last = KnownRelays(home / FILE).last()
    if last is None or last[1].relay in own_relays(home):
        return None
    with contextlib.suppress(ValueError):  # this version does not support the address
        return Invite(url=last[0], swarm=last[1].swarm, relay=last[1].relay, room=last[1].room)
    return None


def _found(invite: Invite, private: PrivateSwarm | None) -> str:
    sentence = f"A swarm was found on this network, at {invite.url}."
    if private is not None:
        return sentence
    return f"{sentence} Anyone on this network can offer one; only an invite tells whose it is."


def _with(private: PrivateSwarm | None, invite: Invite) -> Invite:
    return invite if private is None else private_invite(private, invite)


async def _look(say: Callable[[str], None]) -> list[FoundRelay]:
    from app.swarm.invite.discovery import DiscoveryError, find

    try:
        return await find()
    except DiscoveryError as error:
        say(str(error))
        return []


async def _nothing() -> list[FoundRelay]:
    return []


async def _reaches(invite: Invite | None) -> bool:
    """Whether anything listens at the address; the later handshake verifies which relay it is."""
    if invite is None:
        return False
    parts = urllib.parse.urlsplit(invite.url)
    port = parts.port or (443 if parts.scheme == "wss" else 80)
    try:
        async with asyncio.timeout(REACH_S):
            _, writer = await asyncio.open_connection(parts.hostname, port)
        writer.close()
    except (OSError, TimeoutError):
        return False
    return True
