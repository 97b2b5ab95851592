"""Who is connected to the relay and to the others on its backplane, and its counters, cheap to increment. The
status page, the metrics and the operator's `status` read them only on request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from itertools import islice
from typing import Annotated

import msgspec

from app.relay.store.window import Clock


class _Peer(msgspec.Struct):
    """A connected key: since when, and by how many connections."""

    since: float
    connections: int = 0


class Presence:
    """The signed-in connections of one relay. The cost of an event does not depend on their number."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sessions: dict[Hashable, bytes] = {}
        self._peers: dict[bytes, _Peer] = {}

    def arrive(self, session: Hashable, key: bytes) -> None:
        """Registers a connection that has signed in. Raises ValueError if the session is already registered."""
        if session in self._sessions:
            raise ValueError("This session is already here.")
        self._sessions[session] = key
        self._peers.setdefault(key, _Peer(self._clock())).connections += 1

    def leave(self, session: Hashable) -> None:
        """Removes a connection that has ended. Idempotent; ignores unknown sessions."""
        key = self._sessions.pop(session, None)
        if key is None:
            return
        peer = self._peers[key]
        peer.connections -= 1
        if not peer.connections:
            del self._peers[key]

    def connections(self, key: bytes) -> int:
        peer = self._peers.get(key)
        return peer.connections if peer is not None else 0

    def oldest(self, most: int) -> list[tuple[bytes, float]]:
        """The `most` keys that have been connected longest, longest first, and for how many seconds."""
        now = self._clock()
        return [(key, now - peer.since) for key, peer in islice(self._peers.items(), most)]

    @property
    def sessions(self) -> int:
        """Number of connections of all keys."""
        return len(self._sessions)

    def __len__(self) -> int:
        """Number of connected keys."""
        return len(self._peers)


SUMMARY_EVERY_S = 5.0  # a third of RELAY_GONE_S: two may get lost
RELAY_GONE_S = 15.0
"""Seconds of silence after which a relay and its peers are no longer counted."""
MAX_RELAYS = 1_000  # bounds memory, whatever the backplane says

_counts = msgspec.msgpack.Decoder(Annotated[int, msgspec.Meta(ge=0, le=1 << 32)])


class OtherRelays:
    """How many keys are connected to each other relay, as it said last."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._relays: dict[str, tuple[int, float]] = {}

    def record_summary(self, relay: str, summary: bytes) -> None:
        """Stores what another relay said; ignores malformed summaries."""
        try:
            said = _counts.decode(summary)
        except msgspec.MsgspecError:
            return
        if relay in self._relays or len(self._relays) < MAX_RELAYS:
            self._relays[relay] = said, self._clock()

    @property
    def relays(self) -> int:
        """Number of other relays heard from in the last RELAY_GONE_S seconds."""
        gone = self._clock() - RELAY_GONE_S
        self._relays = {relay: said for relay, said in self._relays.items() if said[1] >= gone}
        return len(self._relays)

    def peers(self, own: int) -> int:
        """Number of keys in the whole swarm, `own` of them at this relay. One that moves is counted at both
        relays until the old one speaks again."""
        return own + sum(said for said, _ in self._relays.values()) if self.relays else own


def encode_summary(keys: int) -> bytes:
    """Encodes the number of connected keys for the other relays."""
    return msgspec.msgpack.encode(keys)


class RelayCounters:
    """Counters since the start: frames' bytes in both directions, samples answered and groups in them, sign-ins
    by result, connections refused or ended by reason."""

    __slots__ = ("bytes_in", "bytes_out", "ended", "items", "samples", "sign_ins", "started")

    def __init__(self, clock: Clock) -> None:
        self.started = clock()
        self.bytes_in = 0
        self.bytes_out = 0
        self.samples = 0
        self.items = 0
        self.sign_ins: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
