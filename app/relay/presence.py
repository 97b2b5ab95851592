"""The relay's statistics about itself: plain counters, cheap to increment. The status page, the metrics and the
operator's `status` read them only on request."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Collection, Hashable
from hashlib import blake2b
from itertools import islice
from typing import Annotated

import msgspec

from app.relay.store.window import Clock

ACTIVE_S = 600.0
"""Seconds after its last group of a family for which a key counts as playing that family."""
MAX_FAMILIES_PER_KEY = 64

STARTER, UNKNOWN = "starter", "unknown"
_CLASSES = ((1.0, "under 1B"), (3.0, "1B to 3B"), (8.0, "3B to 8B"), (float("inf"), "8B and more"))
_SIZE = re.compile(r"(?<![0-9.])([0-9]{1,6}(?:\.[0-9]{1,6})?)([bm])(?![a-z0-9])", re.IGNORECASE)


def model_size_class(model: str) -> str:
    """The size class of a model, from the number of parameters in its name.

    >>> [model_size_class(name) for name in ("Qwen/Qwen2.5-0.5B", "Llama-3.1-8B", "starter", "me")]
    ['under 1B', '8B and more', 'starter', 'unknown']
    """
    if model == STARTER:
        return STARTER
    size = _SIZE.search(model)
    if size is None:
        return UNKNOWN
    billions = float(size[1]) / (1 if size[2] in "bB" else 1000)
    return next(name for below, name in _CLASSES if billions < below)


class PresenceCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Number of connected keys and of their connections, and keys by recently played family (a key may play
    several) and by model class (each key once, "unknown" until its first group)."""

    peers: int
    connections: int
    families: dict[str, int]
    models: dict[str, int]


class ConnectedPeer(msgspec.Struct, frozen=True, kw_only=True):
    """One connected key: its model's size class, the families it plays, and the seconds since it connected."""

    model: str
    families: tuple[str, ...]
    here_s: float


class _Peer:
    __slots__ = ("connections", "families", "model", "named", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.connections = 0
        self.families: set[str] = set()
        self.model = UNKNOWN
        self.named = ""


class Presence:
    """The signed-in connections of one relay: who is there, and what they play with models of which size.
    Names of models come from peers and are sorted into a few classes, so that nobody fills a page or a metric
    with names of their own. The cost of an event does not depend on their number."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sessions: dict[Hashable, bytes] = {}
        self._peers: dict[bytes, _Peer] = {}
        self._played: OrderedDict[tuple[bytes, str], float] = OrderedDict()
        self._families: Counter[str] = Counter()
        self._models: Counter[str] = Counter()

    def arrive(self, session: Hashable, key: bytes) -> None:
        """Registers a connection that has signed in. Raises ValueError if the session is already registered."""
        if session in self._sessions:
            raise ValueError("This session is already here.")
        self._sessions[session] = key
        peer = self._peers.get(key)
        if peer is None:
            peer = self._peers[key] = _Peer(self._clock())
            self._models[peer.model] += 1
        peer.connections += 1

    def leave(self, session: Hashable) -> None:
        """Removes a connection that has ended. Idempotent; ignores unknown sessions."""
        key = self._sessions.pop(session, None)
        if key is None:
            return
        peer = self._peers[key]
        peer.connections -= 1
        if not peer.connections:
            for family in tuple(peer.families):
                self._stop(key, family)
            self._models[peer.model] -= 1
            del self._peers[key]

    def published(self, key: bytes, family: str, model: str) -> None:
        """Records the family and model of an accepted group. Does nothing if the key is not connected."""
        peer = self._peers.get(key)
        if peer is None:
            return
        if model != peer.named:
            self._models[peer.model] -= 1
            peer.named, peer.model = model, model_size_class(model)
            self._models[peer.model] += 1
        if family not in peer.families:
            self._expire()
            if len(peer.families) >= MAX_FAMILIES_PER_KEY:
                return
            peer.families.add(family)
            self._families[family] += 1
        pair = key, family
        self._played[pair] = self._clock()
        self._played.move_to_end(pair)

    def connections(self, key: bytes) -> int:
        peer = self._peers.get(key)
        return peer.connections if peer is not None else 0

    def oldest(self, most: int) -> list[tuple[bytes, ConnectedPeer]]:
        """The `most` peers that have been connected longest, longest first."""
        self._expire()
        now = self._clock()
        return [
            (
                key,
                ConnectedPeer(model=peer.model, families=tuple(sorted(peer.families)), here_s=now - peer.since),
            )
            for key, peer in islice(self._peers.items(), most)
        ]

    @property
    def keys(self) -> Collection[bytes]:
        return self._peers.keys()

    def counts(self) -> PresenceCounts:
        self._expire()
        return PresenceCounts(
            peers=len(self._peers),
            connections=len(self._sessions),
            families=dict(sorted((+self._families).items())),
            models=dict(sorted((+self._models).items())),
        )

    def __contains__(self, key: bytes) -> bool:
        return key in self._peers

    def _expire(self) -> None:
        oldest = self._clock() - ACTIVE_S
        while self._played and next(iter(self._played.values())) < oldest:
            self._stop(*next(iter(self._played)))

    def _stop(self, key: bytes, family: str) -> None:
        del self._played[key, family]
        self._peers[key].families.discard(family)
        self._families[family] -= 1
        if not self._families[family]:
            del self._families[family]


SUMMARY_EVERY_S = 5.0  # a third of RELAY_GONE_S: two may get lost
RELAY_GONE_S = 15.0
"""Seconds of silence after which a relay and its peers are no longer counted."""
MAX_LISTED_KEYS = 2_000
"""Maximum keys that a relay lists individually in its summary."""
MAX_RELAYS = 1_000  # bounds memory, whatever the backplane says
_PRINT = 8  # bytes of a key's hash
_KEPT_S = 1.0  # the count is cached this long


class PresenceSummary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One relay's report of its connected keys: their hashes, or only their number if there are too many."""

    prints: Annotated[bytes, msgspec.Meta(max_length=MAX_LISTED_KEYS * _PRINT)] = b""
    unnamed: Annotated[int, msgspec.Meta(ge=0, le=1 << 32)] = 0

    def __post_init__(self) -> None:
        if len(self.prints) % _PRINT:
            raise ValueError("A summary has whole prints.")

    @classmethod
    def of(cls, keys: Collection[bytes]) -> PresenceSummary:
        if len(keys) > MAX_LISTED_KEYS:
            return cls(unnamed=len(keys))
        return cls(prints=b"".join(blake2b(key, digest_size=_PRINT).digest() for key in keys))

    def key_hashes(self) -> list[bytes]:
        return [self.prints[at : at + _PRINT] for at in range(0, len(self.prints), _PRINT)]


def count_keys(summaries: Collection[PresenceSummary]) -> int:
    """Number of distinct keys in all these summaries: exact if each relay lists its keys, else an upper
    bound."""
    prints = {one for summary in summaries for one in summary.key_hashes()}
    return len(prints) + sum(summary.unnamed for summary in summaries)


_summaries = msgspec.msgpack.Decoder(PresenceSummary)


class OtherRelays:
    """The latest presence summary of each other relay. A key may be connected to two relays, so their counts
    cannot be added: a relay with up to MAX_LISTED_KEYS keys lists a hash of each, and the union of these is
    exact; a larger one tells only its count, which is added."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._relays: dict[str, tuple[PresenceSummary, float]] = {}
        self._counted: tuple[float, int] | None = None

    def record_summary(self, relay: str, summary: bytes) -> None:
        """Stores another relay's summary; ignores malformed ones."""
        try:
            said = _summaries.decode(summary)
        except msgspec.MsgspecError:
            return
        if relay in self._relays or len(self._relays) < MAX_RELAYS:
            self._relays[relay] = said, self._clock()

    @property
    def relays(self) -> int:
        """Number of other relays heard from in the last RELAY_GONE_S seconds."""
        gone = self._clock() - RELAY_GONE_S
        for relay in [relay for relay, (_, at) in self._relays.items() if at < gone]:
            del self._relays[relay]
        return len(self._relays)

    def peers(self, own: Collection[bytes]) -> int:
        """Number of keys in the whole swarm, including this relay's own. Recomputed at most once a second."""
        if not self.relays:
            self._counted = None
            return len(own)
        now = self._clock()
        if self._counted is None or now - self._counted[0] >= _KEPT_S:
            others = [summary for summary, _ in self._relays.values()]
            self._counted = now, count_keys([PresenceSummary.of(own), *others])
        return self._counted[1]


def encode_summary(keys: Collection[bytes]) -> bytes:
    """Encodes the presence summary of `keys` for the other relays."""
    return msgspec.msgpack.encode(PresenceSummary.of(keys))


HOUR_MIN = 60  # buckets of a minute


class GroupsPerHour:
    """Counts the groups of the last hour by family, in buckets of a minute."""

    __slots__ = ("_clock", "_minutes")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._minutes: dict[int, Counter[str]] = {}

    def note(self, family: str, age_s: float = 0.0) -> None:
        """Counts a group of `family` that arrived `age_s` seconds ago."""
        minute = int((self._clock() - age_s) // 60)
        families = self._minutes.get(minute)
        if families is None:
            oldest = self._oldest()
            self._minutes = {at: kept for at, kept in self._minutes.items() if at > oldest}
            families = self._minutes[minute] = Counter()
        families[family] += 1

    def totals(self) -> Counter[str]:
        """Counts by family over the last 59 to 60 minutes."""
        oldest = self._oldest()
        total: Counter[str] = Counter()
        for minute, families in self._minutes.items():
            if minute > oldest:
                total.update(families)
        return total

    def _oldest(self) -> int:
        return int(self._clock() // 60) - HOUR_MIN


class RelayCounters:
    """Counters since the start: frames' bytes in both directions, samples answered and groups in them, sign-ins
    by result, connections refused or ended by reason."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "ended",
        "hour",
        "items",
        "samples",
        "sign_ins",
        "started",
    )

    def __init__(self, clock: Clock) -> None:
        self.started = clock()
        self.bytes_in = 0
        self.bytes_out = 0
        self.samples = 0
        self.items = 0
        self.sign_ins: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.hour = GroupsPerHour(clock)
