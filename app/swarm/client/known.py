"""Relays that this home has met: the id and the swarm behind each address, in a small file.

An id follows from the relay's key, so anyone who takes over an address later has another id; nothing is signed
for that one.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from app.common import files
from app.swarm.wire.body import SwarmId
from app.swarm.wire.protocol import RelayId
from app.swarm.wire.signin import is_relay_id

MOST = 64
"""Addresses that are remembered; beyond that the one met first is forgotten."""
_LARGEST = 64 * 1024


class Relay(msgspec.Struct, frozen=True, kw_only=True):
    relay: RelayId
    swarm: SwarmId
    room: Literal["class"] | None = None
    """As what the owner joined."""


class _File(msgspec.Struct, frozen=True, kw_only=True):
    v: Literal[1] = 1
    relays: Annotated[dict[str, Relay], msgspec.Meta(max_length=MOST)]


class KnownRelays:
    """What is known by address. A file that cannot be read is as good as none: the relays are met again."""

    __slots__ = ("_path", "_relays")

    def __init__(self, path: Path) -> None:
        self._path = path
        found = files.read_json(path, _File, _LARGEST)
        # an id of version 1 followed from nothing, and a relay that is updated has another
        relays = found.relays.items() if found else ()
        self._relays: dict[str, Relay] = {url: met for url, met in relays if is_relay_id(met.relay)}

    def get(self, url: str) -> Relay | None:
        return self._relays.get(url)

    def last(self) -> tuple[str, Relay] | None:
        """The address met last and what is there: where a node without an invite may go again."""
        return next(reversed(self._relays.items()), None)

    def remember(self, url: str, relay: str, swarm: str, obeys: bool = False) -> None:
        """A disk that does not take it costs the memory of this relay only."""
        met = Relay(relay=relay, swarm=swarm, room="class" if obeys else None)
        if self.last() == (url, met):
            return
        self._relays.pop(url, None)
        self._relays[url] = met
        while len(self._relays) > MOST:
            del self._relays[next(iter(self._relays))]
        with contextlib.suppress(OSError):
            files.write_json(self._path, _File(relays=self._relays))
