"""Sampling: which groups of the window one asker gets.

First a peer, uniformly, then one of its groups, uniformly: publishing a thousand groups buys no more influence
than publishing ten. A batch goes round the peers in a random order, one group from each, and comes round again
only where the caps allow it. Nobody gets their own groups, nor a group twice while it is remembered.

The order is drawn lazily without repetition, and the work for one batch is bounded: in a large window a batch
takes a few dozen steps, and where only old acquaintances are left it ends short rather than search on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from random import Random

import msgspec

from app.relay.window import Author, Kept, Line, Part, Section, Window

Weight = Callable[[bytes], float]
"""How readily a key is drawn, 0 (never) to 1; see `standing`."""
Parts = dict[Part, Section]
"""The sections that an asker named, none inside another."""
_PRINT = 8
"""Bytes of an id that are remembered: with 64 bits no two groups are mistaken for each other."""

_STEPS = 1024
"""Most peers and groups looked at for one batch."""
_FIRST_TRIES, _LATER_TRIES = 16, 64
"""Groups of one peer looked at in a row: a peer of whom the asker has nearly everything must not use up the
steps."""

_END = Kept(id=b"", key=b"", address="", family="", level=0, raw=b"", arrived=0.0)


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What one asker wants: at most `k` groups and `max_bytes` bytes, of these families (None: of any; a family
    may be narrowed to a level), none older than `max_age_s`, and if they like fewer per publisher."""

    key: bytes
    k: int
    max_bytes: int
    families: tuple[Part, ...] | None = None
    max_age_s: float | None = None
    per_key: int | None = None


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What an asker gets. `window` counts the groups in the parts asked for, `eligible` those of them that
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

    def sample(self, ask: Ask, weight: Weight | None = None) -> Batch:
        """At most `ask.k` groups. A key of weight w is passed over with probability 1 - w, and still gives when
        the others leave the batch short; a key of weight 0 never does. Without `weight` all weigh 1."""
        window = self._window
        window.expire()
        own = window.author(ask.key) if ask.key in window.peers else None
        if ask.families is None:
            parts = None
            total = len(window)
            mine = own.line.groups if own is not None else 0
        else:
            parts = self._parts(ask.families)
            total = sum([section.line.groups for section in parts.values()])
            if total == len(window):
                parts = None  # all that is here was asked for, which is found in a shorter way
                mine = own.line.groups if own is not None else 0
            else:
                mine = sum([line.groups for line in _lines(own, parts)]) if own is not None else 0
        groups = self._draw(ask, parts, weight) if total > mine else []
        return Batch(
            groups=tuple(groups),
            window=total,
            eligible=total - mine,
            sources=len({group.key for group in groups}),
        )

    def forget(self, asker: bytes) -> None:
        """Drop the memory of what an asker got."""
        self._given.pop(asker, None)

    def _parts(self, families: tuple[Part, ...]) -> Parts:
        """The sections asked for, none inside another."""
        whole = {part for part in families if isinstance(part, str)}
        return {
            part: section
            for part in families
            if (part in whole or part[0] not in whole) and (section := self._window.section(part)) is not None
        }

    def _draw(self, ask: Ask, parts: Parts | None, weight: Weight | None) -> list[Kept]:
        caps = self._caps.of(ask.k, *self._sources(ask, parts))
        per_key, of_address = min(caps.key, ask.per_key or caps.key), caps.address
        since = None if ask.max_age_s is None else self._window.now() - ask.max_age_s
        given, random = self._memory(ask.key), self._rng.random
        chosen: list[Kept] = []
        by_address: dict[str, int] = {}
        room, steps = ask.max_bytes, _STEPS

        def put(group: Kept) -> bool:
            """The group into the batch, if it fits in."""
            nonlocal room
            address, size = group.address, len(group.raw)
            count = by_address.get(address, 0)
            if count >= of_address or size > room:
                return False
            chosen.append(group)
            by_address[address] = count + 1
            room -= size
            given.add(group.id)
            return True

        def take(hand: _Hand, tries: int) -> None:
            """One more group from this peer, if one is found in so many tries."""
            nonlocal steps
            for _ in range(min(tries, steps)):
                steps -= 1
                group = next(hand.deal, _END)
                if group is _END:
                    hand.closed = True
                    return
                if group is not None and group.id not in given:
                    fits = put(group)
                    hand.gave += fits
                    # if not, trying the peer's other groups would cost the next peers their turn
                    hand.closed = not fits or hand.gave >= per_key
                    return

        first: list[_Hand] = []
        passed: list[Sequence[Line]] = []
        author = self._window.author
        for key in self._peers(parts):
            if len(chosen) == ask.k or steps <= 0:
                break
            steps -= 1
            if key is None or key == ask.key:
                continue
            likely = 1.0 if weight is None else weight(key)
            if likely <= 0:
                continue
            lines = (author(key).line,) if parts is None else _lines(author(key), parts)
            if likely < 1 and random() >= likely:
                passed.append(lines)
                continue
            # mostly the first group drawn will do, and nothing more is needed of this peer
            group = _any(lines, since, random())
            if group is not None and group.id not in given:
                if put(group) and per_key > 1:
                    first.append(_Hand(lines, since, self._rng, gave=1))
                continue
            hand = _Hand(lines, since, self._rng)
            take(hand, _FIRST_TRIES)
            first.append(hand)
        if len(chosen) < ask.k:
            first[:0] = [_Hand(lines, since, self._rng) for lines in passed]
        hands = first
        while hands and len(chosen) < ask.k and steps > 0:
            for hand in hands:
                if len(chosen) < ask.k and not hand.closed:
                    take(hand, _LATER_TRIES)
            hands = [hand for hand in hands if not hand.closed]
        return chosen

    def _peers(self, parts: Parts | None) -> Iterator[bytes | None]:
        """Every key with groups in the parts once, in a random order, found along the shorter way: through
        all keys, leaving out those with nothing there, or part by part, each key at the first where it
        stands. None stands for a step that found nobody."""
        everybody = self._window.peers
        if parts is None:
            return map(everybody.at, shuffled(len(everybody), self._rng))
        return self._peers_of(parts)

    def _peers_of(self, parts: Parts) -> Iterator[bytes | None]:
        everybody = self._window.peers
        rosters = [section.peers for section in parts.values()]
        total = sum(map(len, rosters))
        if len(everybody) <= total:
            for position in shuffled(len(everybody), self._rng):
                key = everybody.at(position)
                yield key if _lines(self._window.author(key), parts) else None
            return
        for position in shuffled(total, self._rng):
            for nth, roster in enumerate(rosters):
                if position < len(roster):
                    key = roster.at(position)
                    for earlier in rosters[:nth]:
                        if key in earlier:
                            yield None
                            break
                    else:
                        yield key
                    break
                position -= len(roster)

    def _sources(self, ask: Ask, parts: Parts | None) -> tuple[int, int]:
        """How many other keys and addresses have something to give: counted where the caps depend on it, each
        key at the address of its newest group in a part; with many keys the most in one part."""
        window = self._window
        if parts is None:
            rosters, locals = [window.peers], [len(window.addresses)]
        else:
            rosters = [section.peers for section in parts.values()]
            locals = [len(section.addresses) for section in parts.values()]
        sizes = [len(roster) for roster in rosters]
        if sum(sizes) > 16 * ask.k:
            return max(sizes) - 1, max(locals)
        keys = {key for roster in rosters for key in roster} - {ask.key}
        newest = [line.newest() for key in keys for line in _lines(window.author(key), parts)]
        return len(keys), len({group.address for group in newest if group is not None})

    def _memory(self, asker: bytes) -> _Given:
        given = self._given.get(asker)
        if given is None:
            given = self._given[asker] = _Given(self._remembered)
            if len(self._given) > self._askers:
                self._given.popitem(last=False)
        self._given.move_to_end(asker)
        return given


def _lines(author: Author, parts: Parts | None) -> list[Line]:
    """The author's lines in these parts, or the one of everything."""
    if parts is None:
        return [author.line]
    mine = author.parts
    return [mine[part] for part in parts if part in mine]


def _any(lines: Sequence[Line], since: float | None, chance: float) -> Kept | None:
    """The group at a place of these lines, by a number in [0, 1); None where one has left or none is."""
    if len(lines) == 1:  # the usual case, worth its own short way
        line = lines[0]
        start, end = line.span(since)
        return line.at(start + int(chance * (end - start))) if start < end else None
    places = [(line, *line.span(since)) for line in lines]
    total = sum([end - start for _, start, end in places])
    return _at(places, int(chance * total)) if total else None


def _dealt(lines: Sequence[Line], since: float | None, rng: Random) -> Iterator[Kept | None]:
    """The groups of these lines in a random order, each once; None where one has left."""
    places = [(line, *line.span(since)) for line in lines]
    for position in shuffled(sum([end - start for _, start, end in places]), rng):
        yield _at(places, position)


def _at(places: list[tuple[Line, int, int]], position: int) -> Kept | None:
    for line, start, end in places:
        if position < end - start:
            return line.at(start + position)
        position -= end - start
    raise IndexError(position)


class _Hand:
    """One peer in the making of a batch: its groups as they are dealt, how many it `gave`, and whether it is
    `closed`, because no more of them may go in or none is left."""

    __slots__ = ("closed", "deal", "gave")

    def __init__(self, lines: Sequence[Line], since: float | None, rng: Random, gave: int = 0) -> None:
        self.deal = _dealt(lines, since, rng)
        self.gave = gave
        self.closed = False


class _Given:
    """The ids one asker got, the oldest overwritten: a ring of 8-byte prints in one bytearray, and their first
    bytes in another, where a search takes no time."""

    __slots__ = ("_firsts", "_next", "_prints", "_room")

    def __init__(self, room: int) -> None:
        self._firsts = bytearray()
        self._prints = bytearray()
        self._room = room
        self._next = 0

    def add(self, id: bytes) -> None:
        place = self._next
        if place == len(self._firsts):
            self._firsts.append(id[0])
            self._prints += id[:_PRINT]
        else:
            self._firsts[place] = id[0]
            self._prints[place * _PRINT : (place + 1) * _PRINT] = id[:_PRINT]
        self._next = (place + 1) % self._room

    def __contains__(self, id: bytes) -> bool:
        place = self._firsts.find(id[0])
        while place >= 0:
            if self._prints.startswith(id[:_PRINT], place * _PRINT):
                return True
            place = self._firsts.find(id[0], place + 1)
        return False


def shuffled(n: int, rng: Random) -> Iterator[int]:
    """0 to n - 1 in a random order, drawn as far as it is read: Fisher and Yates' shuffle in a table of the
    places that have changed.

    >>> sorted(shuffled(5, Random(1))), next(shuffled(10**12, Random(1))) < 10**12
    ([0, 1, 2, 3, 4], True)
    """
    moved: dict[int, int] = {}
    for place in range(n):
        other = place + int(rng.random() * (n - place))
        yield moved.get(other, other)
        moved[other] = moved.get(place, place)
