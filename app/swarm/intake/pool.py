"""Checked groups of peers, waiting to be trained on. Each is used once; none waits longer than it is fresh."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

import msgspec

from app.sapo.groups import ScoredGroup
from app.sapo.mixing import PeerOffer
from app.swarm.wire.limits import OLDEST_S

MOST = 256
MOST_BYTES = 4_000_000
PER_PEER = 64
SHORTEST_ROUND_S = 30.0
"""Ages are counted in rounds of at least this length: a fast node must not find everything too old."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A peer's group that this node has verified and scored itself. `peer` is the author's key in hex, `text`
    the question's as this node has made it, `created_ms` the author's word. `since_ms` is from when its age
    counts, where that is later: of a group from the archive, its coming here."""

    id: str
    peer: str
    name: str
    scored: ScoredGroup
    text: str
    created_ms: int
    since_ms: int = 0

    @property
    def counts_ms(self) -> int:
        return max(self.created_ms, self.since_ms)

    @property
    def size(self) -> int:
        """Bytes of memory, near enough."""
        group = self.scored.group
        return 2048 + sys.getsizeof(self.text) + sum(map(sys.getsizeof, group.completions_G))


class PoolFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`added` groups are here, or were `taken`, or dropped: `aged`, or `displaced` by newer ones."""

    groups: int
    peers: int
    bytes: int
    added: int
    taken: int
    aged: int
    displaced: int


class Pool:
    """Bounded in groups, bytes and groups of one peer. When it is full, whoever has most in it loses the oldest
    one: a flood displaces itself."""

    def __init__(
        self,
        *,
        most: int = MOST,
        most_bytes: int = MOST_BYTES,
        per_peer: int = PER_PEER,
        oldest_s: float = OLDEST_S,
    ) -> None:
        self._most, self._most_bytes, self._per_peer, self._oldest_s = most, most_bytes, per_peer, oldest_s
        self._groups: dict[str, Checked] = {}
        self._peers: Counter[str] = Counter()
        self._bytes = self._added = self._taken = self._aged = self._displaced = 0
        self._offered: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def peers(self) -> int:
        return len(self._peers)

    def add(self, checked: Checked, now_ms: int) -> None:
        """A group that is there already changes nothing."""
        if checked.id in self._groups:
            return
        self._age(now_ms)
        self._groups[checked.id] = checked
        self._peers[checked.peer] += 1
        self._bytes += checked.size
        self._added += 1
        if self._peers[checked.peer] > self._per_peer:
            self._displace(checked.peer)
        while len(self._groups) > self._most or self._bytes > self._most_bytes:
            self._displace(max(self._peers, key=self._peers.__getitem__))

    def offers(self, now_ms: int, round_s: float) -> list[PeerOffer]:
        """What can be chosen from, oldest first, for `app.sapo.mixing.choose`. `round_s` is how long a round of
        this node takes, in seconds: ages are in its rounds, so that a slow node finds groups as well."""
        self._age(now_ms)
        self._offered = tuple(self._groups)
        length_s = max(round_s, SHORTEST_ROUND_S)
        return [
            PeerOffer(
                peer=one.peer,
                age=int(max(0, now_ms - one.counts_ms) / 1000 / length_s),
                rewards_G=one.scored.rewards_G,
            )
            for one in self._groups.values()
        ]

    def take(self, positions: Sequence[int]) -> list[Checked]:
        """The groups at these positions of the latest offers, which are then gone. One that was displaced
        meanwhile is left out."""
        ids = dict.fromkeys(self._offered[position] for position in positions)
        taken = [self._remove(id) for id in ids if id in self._groups]
        self._taken += len(taken)
        return taken

    def figures(self) -> PoolFigures:
        return PoolFigures(
            groups=len(self._groups),
            peers=len(self._peers),
            bytes=self._bytes,
            added=self._added,
            taken=self._taken,
            aged=self._aged,
            displaced=self._displaced,
        )

    def _age(self, now_ms: int) -> None:
        limit = now_ms - self._oldest_s * 1000
        for id in [id for id, one in self._groups.items() if one.counts_ms < limit]:
            self._remove(id)
            self._aged += 1

    def _displace(self, peer: str) -> None:
        """The group of this peer that came first goes."""
        self._remove(next(id for id, one in self._groups.items() if one.peer == peer))
        self._displaced += 1

    def _remove(self, id: str) -> Checked:
        one = self._groups.pop(id)
        self._bytes -= one.size
        self._peers[one.peer] -= 1
        if not self._peers[one.peer]:
            del self._peers[one.peer]
        return one
