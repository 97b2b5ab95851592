"""Presence: who is connected, what they play and with models of which size.

Counts only, and exact: a set of keys is small beside their connections. Names of models come from peers and are
sorted into a few classes of size, so that no one can fill a page or a metric with names of their own.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Collection, Hashable
from itertools import islice

import msgspec

from app.relay.store.window import Clock

ACTIVE_S = 600.0
"""A key plays a family until this long after its last group of it."""
FAMILIES_OF_A_KEY = 64

STARTER, UNKNOWN = "starter", "unknown"
_CLASSES = ((1.0, "under 1B"), (3.0, "1B to 3B"), (8.0, "3B to 8B"), (float("inf"), "8B and more"))
_SIZE = re.compile(r"(?<![0-9.])([0-9]{1,6}(?:\.[0-9]{1,6})?)([bm])(?![a-z0-9])", re.IGNORECASE)


def model_class(model: str) -> str:
    """The class of a model, by the parameters that its name tells.

    >>> [model_class(name) for name in ("Qwen/Qwen2.5-0.5B", "SmolLM2-135M", "Llama-3.1-8B", "starter", "me")]
    ['under 1B', 'under 1B', '8B and more', 'starter', 'unknown']
    """
    if model == STARTER:
        return STARTER
    size = _SIZE.search(model)
    if size is None:
        return UNKNOWN
    billions = float(size[1]) / (1 if size[2] in "bB" else 1000)
    return next(name for below, name in _CLASSES if billions < below)


class Here(msgspec.Struct, frozen=True, kw_only=True):
    """Who is here: keys, their connections, keys by family played lately (a key may play several) and by class
    of model (each key once, "unknown" until its first group)."""

    peers: int
    connections: int
    families: dict[str, int]
    models: dict[str, int]


class Visitor(msgspec.Struct, frozen=True, kw_only=True):
    """One key: the class of its model, the families it plays, and for how many seconds it has been here."""

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
    """The connections of one relay. Every event costs the same however many are here."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sessions: dict[Hashable, bytes] = {}
        self._peers: dict[bytes, _Peer] = {}
        self._played: OrderedDict[tuple[bytes, str], float] = OrderedDict()
        self._families: Counter[str] = Counter()
        self._models: Counter[str] = Counter()

    def arrive(self, session: Hashable, key: bytes) -> None:
        """A connection has said who it is. Raises ValueError when the session is already here."""
        if session in self._sessions:
            raise ValueError("This session is already here.")
        self._sessions[session] = key
        peer = self._peers.get(key)
        if peer is None:
            peer = self._peers[key] = _Peer(self._clock())
            self._models[peer.model] += 1
        peer.connections += 1

    def leave(self, session: Hashable) -> None:
        """A connection has ended; one that never arrived may leave too."""
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
        """A group of this key was accepted. Nothing happens for a key that is not here."""
        peer = self._peers.get(key)
        if peer is None:
            return
        if model != peer.named:
            self._models[peer.model] -= 1
            peer.named, peer.model = model, model_class(model)
            self._models[peer.model] += 1
        if family not in peer.families:
            self._expire()
            if len(peer.families) >= FAMILIES_OF_A_KEY:
                return
            peer.families.add(family)
            self._families[family] += 1
        pair = key, family
        self._played[pair] = self._clock()
        self._played.move_to_end(pair)

    def connections(self, key: bytes) -> int:
        peer = self._peers.get(key)
        return peer.connections if peer is not None else 0

    def oldest(self, most: int) -> list[tuple[bytes, Visitor]]:
        """Those who have been here longest, in the order in which they came."""
        self._expire()
        now = self._clock()
        return [
            (key, Visitor(model=peer.model, families=tuple(sorted(peer.families)), here_s=now - peer.since))
            for key, peer in islice(self._peers.items(), most)
        ]

    @property
    def keys(self) -> Collection[bytes]:
        return self._peers.keys()

    def here(self) -> Here:
        self._expire()
        return Here(
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
