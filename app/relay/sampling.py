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
from math import inf
from random import Random

import msgspec

from app.relay.window import Author, Kept, Line, Section, Window

Weight = Callable[[bytes], float]
"""How readily a key is drawn, 0 (never) to 1; see `standing`."""
Families = frozenset[str] | None
"""Those that were asked for; None where that is all there are."""
_PRINT = 8
"""Bytes of an id that are remembered: with 64 bits no two groups are mistaken for each other."""

_STEPS = 1024
"""Most peers and groups looked at for one batch."""
_THROWS = 4
"""Places looked at anywhere among a peer's groups before those that were asked for are sought out. Where less
than an eighth of the window was asked for that is done at once (measured)."""
_FIRST_TRIES, _LATER_TRIES = 16, 64
"""Groups of one peer looked at in a row: a peer of whom the asker has nearly everything must not use up the
steps."""

_COUNTED = 128
"""In a swarm so small the publishers are counted, in a larger one the most in one family stand for them."""
_MANY_KEYS, _MANY_ADDRESSES = 16, 8
"""From so many on an equal share is below the caps for any size of a batch."""
_END = Kept(id=b"", key=b"", address="", family="", level=0, raw=b"", arrived=0.0)


class Ask(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one asker wants: at most `k` groups and `max_bytes` bytes, of these families (None: of any), none
    older than `max_age_s`, and if they like fewer per publisher."""

    key: bytes
    k: int
    max_bytes: int
    families: tuple[str, ...] | None = None
    max_age_s: float | None = None
    per_key: int | None = None


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What an asker gets. `window` counts the groups in the families asked for, `eligible` those of them that
    are not the asker's own, `sources` the keys that these are of; in a large swarm those are at least so
    many."""

    groups: list[Kept]
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
        own = window.authors.get(ask.key)
        sections: list[Section] | None = None
        total = len(window)
        mine = own.line.groups if own is not None else 0
        families = None if ask.families is None else frozenset(ask.families)
        if families is not None:
            if window.sections.keys() <= families:
                families = None  # all that is here was asked for, which is found in a shorter way
            else:
                sections = [section for name in families if (section := window.sections.get(name)) is not None]
                total = sum([section.groups for section in sections])
                mine = sum([line.groups for line in own.lines(families)]) if own is not None else 0
        return Batch(
            groups=self._draw(ask, families, sections, weight) if total > mine else [],
            window=total,
            eligible=total - mine,
            sources=self._sources(ask.key, sections),
        )

    def _draw(
        self, ask: Ask, families: Families, sections: list[Section] | None, weight: Weight | None
    ) -> list[Kept]:
        window, random, k = self._window, self._rng.random, ask.k
        caps = self._caps.of(k, *self._shares(ask, families, sections))
        per_key = min(caps.key, ask.per_key or caps.key)
        since = -inf if ask.max_age_s is None else window.now() - ask.max_age_s
        given = self._memory(ask.key)
        draft = _Draft(k, ask.max_bytes, caps.address, given)
        put, has, authors, own, steps = draft.put, given.has, window.authors, ask.key, 0
        narrow = sections is not None and 8 * sum([section.groups for section in sections]) < len(window)
        throws = range(0 if narrow else _THROWS)
        first: list[_Hand] = []
        passed: list[_Hand] = []
        for key in self._peers(sections):
            if draft.full or steps >= _STEPS:
                break
            steps += 1
            if key is None or key == own:
                continue
            author = authors[key]
            if weight is not None and (likely := weight(key)) < 1:
                if likely <= 0:
                    continue
                if random() >= likely:
                    passed.append(_Hand(author, families, since, self._rng))
                    continue
            # mostly the first group drawn will do, and nothing more is needed of this peer
            line = author.line
            slots, head = line.slots, line.head
            there = len(slots) - head
            for _ in throws:
                group = slots[head + int(random() * there)].group
                if group is None:
                    line.tidy()
                    slots, head = line.slots, line.head
                    there = len(slots) - head
                elif group.arrived >= since and (families is None or group.family in families):
                    break
            else:
                lines = _lines(author, families)
                if not lines:
                    continue
                group = _any(lines, since, random())
            if group is not None and not has(group.id):
                if put(group) and per_key > 1:
                    first.append(_Hand(author, families, since, self._rng, gave=1))
                continue
            hand = _Hand(author, families, since, self._rng)
            steps += draft.take(hand, per_key, _FIRST_TRIES)
            first.append(hand)
        if not draft.full:
            draft.go_round(passed + first, per_key, _STEPS - steps)
        return draft.groups

    def _peers(self, sections: list[Section] | None) -> Iterator[bytes | None]:
        """Every key with groups in the sections once, in a random order, found along the shorter way: through
        all keys, also those with nothing there, or section by section, each key at the first where it stands.
        None stands for a step that found nobody."""
        everybody = self._window.peers
        if sections is None or len(everybody) <= sum([len(section.peers) for section in sections]):
            return map(everybody.at, shuffled(len(everybody), self._rng))
        if len(sections) == 1:
            roster = sections[0].peers
            return map(roster.at, shuffled(len(roster), self._rng))
        return self._peers_of(sections)

    def _peers_of(self, sections: list[Section]) -> Iterator[bytes | None]:
        rosters = [section.peers for section in sections]
        for position in shuffled(sum(map(len, rosters)), self._rng):
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

    def _sources(self, asker: bytes, sections: list[Section] | None) -> int:
        """Other keys with groups in these sections."""
        if sections is None:
            everybody = self._window.peers
            return len(everybody) - (asker in everybody)
        rosters = [section.peers for section in sections]
        if sum(map(len, rosters)) <= _COUNTED:
            return len(set().union(*rosters) - {asker})
        return max([len(roster) - (asker in roster) for roster in rosters])

    def _shares(self, ask: Ask, families: Families, sections: list[Section] | None) -> tuple[int, int]:
        """How many other keys and addresses have something to give: counted where the caps depend on it, each
        key at the address of its newest group on a shelf; with many keys the most in one family."""
        window = self._window
        if sections is None:
            rosters, addresses = [window.peers], len(window.addresses)
        else:
            rosters = [section.peers for section in sections]
            addresses = max([len(section.addresses) for section in sections])
        sizes = [len(roster) for roster in rosters]
        most = max(sizes) - 1
        if sum(sizes) > 16 * ask.k or (most >= _MANY_KEYS and addresses > _MANY_ADDRESSES):
            return most, addresses
        keys = set[bytes]().union(*rosters) - {ask.key}
        newest = [
            newest
            for key in keys
            for line in _lines(window.author(key), families)
            if (newest := line.newest()) is not None
        ]
        return len(keys), len({group.address for group in newest})

    def _memory(self, asker: bytes) -> _Given:
        given = self._given.get(asker)
        if given is None:
            given = self._given[asker] = _Given(self._remembered)
            if len(self._given) > self._askers:
                self._given.popitem(last=False)
        self._given.move_to_end(asker)
        return given


def _lines(author: Author, families: Families) -> list[Line]:
    """The author's lines in these families, or the one of everything."""
    return [author.line] if families is None else author.lines(families)


def _any(lines: Sequence[Line], since: float, chance: float) -> Kept | None:
    """The group at a place of these lines, by a number in [0, 1); None where one has left or none is."""
    if len(lines) == 1:
        start, end = lines[0].span(since)
        return lines[0].slots[start + int(chance * (end - start))].group if start < end else None
    places = [(line, *line.span(since)) for line in lines]
    total = sum([end - start for _, start, end in places])
    return _at(places, int(chance * total)) if total else None


def _dealt(author: Author, families: Families, since: float, rng: Random) -> Iterator[Kept | None]:
    """The author's groups in a random order, each once; None where one has left."""
    places = [(line, *line.span(since)) for line in _lines(author, families)]
    for position in shuffled(sum([end - start for _, start, end in places]), rng):
        yield _at(places, position)


def _at(places: list[tuple[Line, int, int]], position: int) -> Kept | None:
    for line, start, end in places:
        if position < end - start:
            return line.slots[start + position].group
        position -= end - start
    raise IndexError(position)


class _Hand:
    """One peer in the making of a batch: its groups as they are dealt, how many it `gave`, and whether it is
    `closed`, because no more of them may go in or none is left."""

    __slots__ = ("closed", "deal", "gave")

    def __init__(self, author: Author, families: Families, since: float, rng: Random, gave: int = 0) -> None:
        self.deal = _dealt(author, families, since, rng)
        self.gave = gave
        self.closed = False


class _Draft:
    """A batch in the making."""

    __slots__ = ("_addresses", "_given", "_k", "_of_address", "_room", "full", "groups")

    def __init__(self, k: int, room: int, of_address: int, given: _Given) -> None:
        self._k = k
        self._room = room
        self._of_address = of_address
        self._given = given
        self._addresses: dict[str, int] = {}
        self.groups: list[Kept] = []
        self.full = False

    def put(self, group: Kept) -> bool:
        """The group into the batch, if it fits in."""
        address, size, groups = group.address, len(group.raw), self.groups
        count = self._addresses.get(address, 0)
        if count >= self._of_address or size > self._room:
            return False
        groups.append(group)
        self.full = len(groups) == self._k
        self._addresses[address] = count + 1
        self._room -= size
        self._given.add(group.id)
        return True

    def take(self, hand: _Hand, per_key: int, tries: int) -> int:
        """One more group from this peer, if one is found in so many tries; how many it took."""
        for tried in range(1, tries + 1):
            group = next(hand.deal, _END)
            if group is _END:
                hand.closed = True
                return tried
            if group is not None and not self._given.has(group.id):
                fits = self.put(group)
                hand.gave += fits
                # if not, trying the peer's other groups would cost the next peers their turn
                hand.closed = not fits or hand.gave >= per_key
                return tried
        return tries

    def go_round(self, hands: list[_Hand], per_key: int, steps: int) -> None:
        """One group from each peer again and again, as long as there is something to take."""
        while hands:
            for hand in hands:
                if self.full or steps <= 0:
                    return
                if not hand.closed:
                    steps -= self.take(hand, per_key, min(_LATER_TRIES, steps))
            hands = [hand for hand in hands if not hand.closed]


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
        place, firsts = self._next, self._firsts
        if place == len(firsts):
            firsts.append(id[0])
            self._prints += id[:_PRINT]
        else:
            firsts[place] = id[0]
            self._prints[place * _PRINT : (place + 1) * _PRINT] = id[:_PRINT]
        self._next = (place + 1) % self._room

    def has(self, id: bytes) -> bool:
        firsts, first = self._firsts, id[0]
        place = firsts.find(first)
        while place >= 0:
            if self._prints.startswith(id[:_PRINT], place * _PRINT):
                return True
            place = firsts.find(first, place + 1)
        return False


def shuffled(n: int, rng: Random) -> Iterator[int]:
    """0 to n - 1 in a random order, drawn as far as it is read: Fisher and Yates' shuffle in a table of the
    places that have changed.

    >>> sorted(shuffled(5, Random(1))), next(shuffled(10**12, Random(1))) < 10**12
    ([0, 1, 2, 3, 4], True)
    """
    moved: dict[int, int] = {}
    random, get = rng.random, moved.get
    for place in range(n):
        other = place + int(random() * (n - place))
        yield get(other, other)
        moved[other] = get(place, place)
