"""Sampling: which groups of the window one asker gets.

First a peer, uniformly, then one of its groups, uniformly: publishing a thousand groups buys no more influence
than publishing ten. A batch goes round the peers in a random order, one group from each, and comes round again
only where the caps allow it. Nobody gets their own groups, nor a group twice while it is remembered.

The order is drawn lazily without repetition, and the work for one batch is bounded: in a large window a batch
takes a few dozen steps, and where only old acquaintances are left it ends short rather than search on.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from itertools import islice
from math import inf
from random import Random

import msgspec

from app.relay.window import Kept, Line, Shelf, Window

Weight = Callable[[bytes], float]
"""How readily a key is drawn, 0 (never) to 1; see `standing`."""
_PRINT = 8
"""Bytes of an id that are remembered: with 64 bits no two groups are mistaken for each other."""

_STEPS = 1024
"""Most peers and groups looked at for one batch."""
_FIRST_TRIES, _LATER_TRIES = 16, 64
"""Groups of one peer looked at in a row: a peer of whom the asker has nearly everything must not use up the
steps."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What one asker wants: at most `k` groups and `max_bytes` bytes, of these families (None: of any; a family
    may be narrowed to a level), none older than `max_age_s`, and if they like fewer per publisher."""

    key: bytes
    k: int
    max_bytes: int
    families: tuple[str | Shelf, ...] | None = None
    max_age_s: float | None = None
    per_key: int | None = None


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What the asker gets. `window` counts the groups on the shelves asked for, `eligible` those of them that
    are not the asker's own, `sources` the publishers in the batch."""

    groups: tuple[Kept, ...]
    window: int
    eligible: int
    sources: int


class Caps(msgspec.Struct, frozen=True):
    """Most groups of one key, and of one address, in a batch of eight."""

    key: int = 1
    address: int = 2

    def of(self, k: int, keys: int, addresses: int) -> Caps:
        """The caps for a batch of `k` where so many keys and addresses have something to give. They grow with
        `k`, and never forbid an equal share: in a swarm of two the other one is all there is.

        >>> Caps().of(8, 100, 50), Caps().of(64, 100, 50), Caps().of(8, 3, 1), Caps().of(1, 100, 50)
        (Caps(key=1, address=2), Caps(key=8, address=16), Caps(key=3, address=8), Caps(key=1, address=1))
        """
        return Caps(
            min(k, max(1, self.key * k // 8, _share(k, keys))),
            min(k, max(1, self.address * k // 8, _share(k, addresses))),
        )


def _share(k: int, sources: int) -> int:
    return -(-k // sources) if sources else k


class Sampler:
    """Draws batches, and remembers the last `remembered` groups given to each of the last `askers` askers, 8
    bytes each."""

    def __init__(
        self,
        window: Window,
        rng: Random,
        *,
        caps: Caps = Caps(),  # noqa: B008 (frozen)
        remembered: int = 512,
        askers: int = 20_000,
    ) -> None:
        self._window = window
        self._rng = rng
        self._caps = caps
        self._remembered = remembered
        self._askers = askers
        self._given: OrderedDict[bytes, _Given] = OrderedDict()

    def sample(self, ask: Ask, weight: Weight = lambda key: 1.0) -> Batch:
        """At most `ask.k` groups. A key of weight w is passed over with probability 1 - w, and still gives when
        the others leave the batch short; a key of weight 0 never does."""
        window = self._window
        window.expire()
        shelves = self._shelves(ask)
        sizes = [window.section(shelf).line.groups for shelf in shelves]
        own = window.lines(ask.key) if ask.key in window.peers else {}
        total = sum(sizes)
        eligible = total - sum(own[shelf].groups for shelf in shelves if shelf in own)
        groups = self._draw(ask, shelves, weight) if eligible else []
        return Batch(
            groups=tuple(groups),
            window=total,
            eligible=eligible,
            sources=len({group.key for group in groups}),
        )

    def forget(self, asker: bytes) -> None:
        """Drop the memory of what an asker got."""
        self._given.pop(asker, None)

    def _shelves(self, ask: Ask) -> list[Shelf]:
        if ask.families is None:
            return list(self._window.sizes)
        shelves: dict[Shelf, None] = {}
        for name in ask.families:
            found = self._window.shelves(name) if isinstance(name, str) else self._window.shelves(*name)
            shelves.update(dict.fromkeys(found))
        return list(shelves)

    def _draw(self, ask: Ask, shelves: list[Shelf], weight: Weight) -> list[Kept]:
        caps = self._caps.of(ask.k, *self._sources(ask, shelves))
        per_key = min(caps.key, ask.per_key or caps.key)
        since = -inf if ask.max_age_s is None else self._window.now() - ask.max_age_s
        given = self._memory(ask.key)
        chosen: list[Kept] = []
        by_address: Counter[str] = Counter()
        room, steps = ask.max_bytes, _STEPS

        def take(hand: _Hand, tries: int) -> None:
            """One more group from this peer into the batch, if one is found in so many tries."""
            nonlocal room, steps
            for group in islice(hand, min(tries, steps)):
                steps -= 1
                if group is None or group.id in given:
                    continue
                if len(group.raw) > room or by_address[group.address] >= caps.address:
                    hand.closed = True  # trying its other groups would cost the next peers their turn
                    return
                chosen.append(group)
                by_address[group.address] += 1
                room -= len(group.raw)
                given.add(group.id)
                hand.gave += 1
                hand.closed = hand.gave >= per_key
                return

        first: list[_Hand] = []
        later: list[_Hand] = []
        for key in self._peers(shelves):
            if len(chosen) == ask.k or steps <= 0:
                break
            steps -= 1
            if key is None or key == ask.key or (likely := weight(key)) <= 0:
                continue
            hand = _Hand(self._window.lines(key), shelves, since, self._rng)
            if self._rng.random() < likely:
                take(hand, _FIRST_TRIES)
                first.append(hand)
            else:
                later.append(hand)
        hands = later + first
        while hands and len(chosen) < ask.k and steps > 0:
            for hand in hands:
                if len(chosen) < ask.k and not hand.closed:
                    take(hand, _LATER_TRIES)
            hands = [hand for hand in hands if not hand.closed]
        return chosen

    def _peers(self, shelves: list[Shelf]) -> Iterator[bytes | None]:
        """Every key with groups on the shelves once, in a random order, found along the shorter way: through
        all keys, leaving out those with nothing there, or shelf by shelf, each key at the first where it
        stands. None stands for a step that found nobody."""
        window, wanted = self._window, set(shelves)
        rosters = [window.section(shelf).peers for shelf in shelves]
        if len(window.peers) <= sum(map(len, rosters)):
            for position in shuffled(len(window.peers), self._rng):
                key = window.peers.at(position)
                yield None if wanted.isdisjoint(window.lines(key)) else key
            return
        for position in shuffled(sum(map(len, rosters)), self._rng):
            for nth, roster in enumerate(rosters):
                if position < len(roster):
                    key = roster.at(position)
                    yield None if any(key in earlier for earlier in rosters[:nth]) else key
                    break
                position -= len(roster)

    def _sources(self, ask: Ask, shelves: list[Shelf]) -> tuple[int, int]:
        """How many other keys and addresses have something to give: exact where the caps depend on it, with
        many keys the most on one shelf."""
        sections = [self._window.section(shelf) for shelf in shelves]
        if sum(len(section.peers) for section in sections) > 32 * ask.k:
            most = max(len(section.peers) for section in sections)
            return most - 1, max(len(section.addresses) for section in sections)
        keys = {key for section in sections for key in section.peers} - {ask.key}
        newest = (
            line.newest() for key in keys for shelf, line in self._window.lines(key).items() if shelf in shelves
        )
        return len(keys), len({group.address for group in newest if group is not None})

    def _memory(self, asker: bytes) -> _Given:
        given = self._given.get(asker)
        if given is None:
            given = self._given[asker] = _Given(self._remembered)
            if len(self._given) > self._askers:
                self._given.popitem(last=False)
        self._given.move_to_end(asker)
        return given


class _Hand:
    """One peer's groups on the shelves asked for, in a random order, each position once; None where one has
    left. `gave` counts those in the batch; `closed` when no more of them may go in, or none is left."""

    __slots__ = ("_order", "_spans", "closed", "gave")

    def __init__(self, lines: dict[Shelf, Line], shelves: list[Shelf], since: float, rng: Random) -> None:
        self._spans = [(lines[shelf], *lines[shelf].span(since)) for shelf in shelves if shelf in lines]
        self._order = shuffled(sum(end - start for _, start, end in self._spans), rng)
        self.gave = 0
        self.closed = False

    def __iter__(self) -> Iterator[Kept | None]:
        return self

    def __next__(self) -> Kept | None:
        position = next(self._order, None)
        if position is None:
            self.closed = True
            raise StopIteration
        for line, start, end in self._spans:
            if position < end - start:
                return line.at(start + position)
            position -= end - start
        raise AssertionError("a position beyond the spans it was drawn from")


class _Given:
    """The ids one asker got, the oldest overwritten: a ring of 8-byte prints in one bytearray."""

    __slots__ = ("_next", "_prints", "_room")

    def __init__(self, room: int) -> None:
        self._prints = bytearray()
        self._room = room * _PRINT
        self._next = 0

    def add(self, id: bytes) -> None:
        self._prints[self._next : self._next + _PRINT] = id[:_PRINT]
        self._next = (self._next + _PRINT) % self._room

    def __contains__(self, id: bytes) -> bool:
        found = self._prints.find(id[:_PRINT])
        while found % _PRINT and found >= 0:
            found = self._prints.find(id[:_PRINT], found + 1)
        return found >= 0


def shuffled(n: int, rng: Random) -> Iterator[int]:
    """0 to n - 1 in a random order, drawn as far as it is read: Fisher and Yates' shuffle in a table of the
    places that have changed.

    >>> sorted(shuffled(5, Random(1))), list(islice(shuffled(10**12, Random(1)), 0))
    ([0, 1, 2, 3, 4], [])
    """
    moved: dict[int, int] = {}
    for place in range(n):
        other = place + int(rng.random() * (n - place))
        yield moved.get(other, other)
        moved[other] = moved.get(place, place)
