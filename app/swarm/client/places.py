"""A node's relays: which one is tried next and when, and what an invite or an earlier connection says of
each."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Literal

import msgspec

from app.common import files
from app.common.rate import Backoff
from app.swarm.client.joining import ExpectedRelay
from app.swarm.invite.invite import Invite, InviteError, invite_from_text
from app.swarm.invite.private import PrivateError, is_access_key, parse_access_key
from app.swarm.wire.body import SwarmId
from app.swarm.wire.protocol import RelayId
from app.swarm.wire.signin import is_relay_id

FILE = "relays.json"
MAX_RELAYS = 64
"""Maximum addresses remembered; above that the oldest is forgotten."""
_LARGEST = 64 * 1024


class KnownRelay(msgspec.Struct, frozen=True, kw_only=True):
    relay: RelayId
    swarm: SwarmId
    room: Literal["class"] | None = None
    """`class` if the owner joined as a student."""


class _File(msgspec.Struct, frozen=True, kw_only=True):
    v: Literal[1] = 1
    relays: Annotated[dict[str, KnownRelay], msgspec.Meta(max_length=MAX_RELAYS)]


class KnownRelays:
    """The relay id and swarm known for each address, in a small file. An id follows from the relay's key, so
    whoever takes over an address later has another id, and nothing is signed for that one. An unreadable file
    counts as missing: the relays are then learned again."""

    __slots__ = ("_path", "_relays")

    def __init__(self, path: Path) -> None:
        self._path = path
        found = files.read_json(path, _File, _LARGEST)
        # a version 1 id did not depend on the key; an updated relay has another
        relays = found.relays.items() if found else ()
        self._relays: dict[str, KnownRelay] = {url: met for url, met in relays if is_relay_id(met.relay)}

    def get(self, url: str) -> KnownRelay | None:
        return self._relays.get(url)

    def last(self) -> tuple[str, KnownRelay] | None:
        """The address used last and its relay: a node without an invite may return there."""
        return next(reversed(self._relays.items()), None)

    def remember(self, url: str, relay: str, swarm: str, obeys: bool = False) -> None:
        """Saves a relay as the one used last. If the disk fails, it is remembered until the process ends."""
        met = KnownRelay(relay=relay, swarm=swarm, room="class" if obeys else None)
        if self.last() == (url, met):
            return
        self._relays.pop(url, None)
        self._relays[url] = met
        while len(self._relays) > MAX_RELAYS:
            del self._relays[next(iter(self._relays))]
        with contextlib.suppress(OSError):
            files.write_json(self._path, _File(relays=self._relays))


def forget_classes(folder: Path) -> None:
    """Forgets a data folder's relays of classes, because the owner has left the class. Raises OSError."""
    path = folder / FILE
    found = files.read_json(path, _File, _LARGEST)
    if found is not None:
        outside = {url: met for url, met in found.relays.items() if met.room is None}
        files.write_json(path, _File(relays=outside))


class RelayEntry:
    """One relay: its address, its invite, and when to try it again."""

    __slots__ = ("invite", "pace", "private", "url")

    def __init__(self, invite: Invite) -> None:
        """Raises InviteError for a malformed access key."""
        try:
            self.private = parse_access_key(invite.token or "") if is_access_key(invite.token) else None
        except PrivateError as error:
            raise InviteError(str(error)) from error
        self.url = invite.url
        self.invite = invite
        self.pace = Backoff()


class RelayEntries:
    """All relays of a node. `memory` is the file of known relays; `now` arguments are monotonic seconds."""

    def __init__(self, relays: Sequence[str | Invite], memory: Path, rng: Random) -> None:
        """Raises InviteError, a ValueError, for a malformed address, and ValueError for an empty list."""
        invites = [one if isinstance(one, Invite) else invite_from_text(one) for one in relays]
        if not invites:
            raise ValueError("A client needs the address of a relay.")
        # Of two with one address the first counts.
        self._places = [RelayEntry(one) for one in {one.url: one for one in reversed(invites)}.values()]
        self._rng = rng
        self.known = KnownRelays(memory)

    @property
    def of_class(self) -> bool:
        """True if the owner joined as a student, and nothing else."""
        return all(place.invite.room is not None for place in self._places)

    def next(self, now: float) -> RelayEntry:
        """The relay with the shortest wait; ties are broken at random."""
        return min(self._places, key=lambda one: (one.pace.wait_s(now), self._rng.random()))

    def wait_s(self, now: float) -> float:
        """Seconds until one of the relays may be tried."""
        return min(one.pace.wait_s(now) for one in self._places)

    def swarm(self) -> str | None:
        """The expected swarm id; an invite's has priority over that of an earlier connection. None if
        unknown."""
        invited = [place.invite.swarm for place in self._places]
        met = [one.swarm for place in self._places if (one := self.known.get(place.url)) is not None]
        return next((swarm for swarm in (*invited, *met) if swarm is not None), None)

    def expected(self, place: RelayEntry, swarm: str | None) -> ExpectedRelay:
        """The relay id and swarm that must be found at this address."""
        met = self.known.get(place.url)
        return ExpectedRelay(
            relay=place.invite.relay or (met.relay if met else None), swarm=swarm, invite=place.invite
        )

    def record_failure(self, place: RelayEntry, now: float, retry_after_ms: int | None, steady: bool) -> None:
        """Records the end of a connection and sets the wait until the next try; after a `steady` connection the
        failure counts as the first."""
        pace = place.pace.after_success() if steady else place.pace
        place.pace = pace.after_failure(now, self._rng.random(), retry_after_ms)
