"""Assembles a batch: peers give groups in turns, within the caps per address and per key.

The work is bounded: a batch has a limited number of steps, each an examined peer or group. The order of peers
and of a peer's groups is drawn lazily without repetition."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from math import inf
from random import Random

import msgspec

from app.relay.store.backing import Weight
from app.relay.store.queues import SITE_CHARS, Author, GroupQueue, Roster, StoredGroup, site
from app.relay.store.window import Window

Families = frozenset[str] | None
"""The requested families; None for all families in the window."""
_PRINT = 2**32 - 1
"""Mask of the bits of an id's hash that are remembered. With 512 remembered groups, one lookup in eight million
mistakes a new group for one of them, and the node does not get it. Python's hash has a random key per process,
so a colliding id cannot be constructed."""

_STEPS = 1024
"""Maximum peers and groups examined for one batch."""
_THROWS = 4
"""Number of random positions tried among a peer's groups before those in the requested families are searched.
If less than an eighth of the window is requested, the search comes first (measured to be faster)."""
_FIRST_TRIES, _LATER_TRIES = 16, 64
"""Maximum groups of one peer examined in a row, in its first and in later turns: a peer of whom the node has
nearly everything must not use up the steps."""

_END = StoredGroup(id=b"", key=b"", address="", family="", level=0, raw=b"", arrived=0.0)


class SampleQuery(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request: at most `k` groups and `max_bytes` bytes, of these families (None: any), none older than
    `max_age_s` seconds, at most `per_key` of one publisher."""

    key: bytes
    k: int
    max_bytes: int
    families: tuple[str, ...] | None = None
    max_age_s: float | None = None
    per_key: int | None = None


class GivenIds:
    """The last groups given to one node, the oldest overwritten: a ring of 4-byte hashes, with their lowest
    bytes in a separate array for a fast search."""

    __slots__ = ("_lows", "_next", "_prints", "_room")

    def __init__(self, room: int) -> None:
        self._lows = bytearray()
        self._prints = array("I")
        self._room = room
        self._next = 0

    def add(self, id: bytes) -> None:
        place, lows, print = self._next, self._lows, hash(id) & _PRINT
        if place == len(lows):
            lows.append(print & 255)
            self._prints.append(print)
        else:
            lows[place] = print & 255
            self._prints[place] = print
        place += 1
        self._next = place if place < self._room else 0

    def has(self, id: bytes) -> bool:
        print, find = hash(id) & _PRINT, self._lows.find
        low = print & 255
        place = find(low)
        while place >= 0:
            if self._prints[place] == print:
                return True
            place = find(low, place + 1)
        return False


class _Hand:
    """One peer's state in a batch: `deal`, its groups in the order in which they are tried; `held`, a group
    that waits for its address's next turn; `gave`, how many it gave; `closed`, True when it may or can give no
    more."""

    __slots__ = ("closed", "deal", "gave", "held")

    def __init__(self, draft: Draft, author: Author, gave: int = 0, held: StoredGroup | None = None) -> None:
        self.deal = _dealt(author, draft.families, draft.since, draft.rng)
        self.gave = gave
        self.held = held
        self.closed = False


class Draft:
    """A batch being assembled. `room`: bytes left; `steps`: examinations left; `addresses`: number of its
    groups by address."""

    __slots__ = (
        "addresses",
        "ask",
        "families",
        "given",
        "groups",
        "narrow",
        "rng",
        "room",
        "since",
        "steps",
        "window",
    )

    def __init__(
        self, ask: SampleQuery, families: Families, window: Window, given: GivenIds, rng: Random
    ) -> None:
        self.ask = ask
        self.families = families
        self.window = window
        self.given = given
        self.rng = rng
        self.since = -inf if ask.max_age_s is None else window.now() - ask.max_age_s
        self.room = ask.max_bytes
        self.steps = _STEPS
        self.addresses: dict[str, int] = {}
        self.groups: list[StoredGroup] = []
        self.narrow = False

    def put(self, group: StoredGroup, of_address: int) -> bool:
        """Adds the group if it fits and its address has given fewer than `of_address` groups. Returns whether
        it did."""
        where, size, addresses = group.address[:SITE_CHARS], len(group.raw), self.addresses
        count = addresses.get(where, 0)
        if count >= of_address or size > self.room:
            return False
        self.groups.append(group)
        addresses[where] = count + 1
        self.room -= size
        self.given.add(group.id)
        return True

    def waits(self, group: StoredGroup, of_address: int) -> bool:
        """True if the address of this group has already given `of_address` groups, its share of this turn."""
        return self.addresses.get(site(group.address), 0) >= of_address


class PeerTurns:
    """Round-robin over peers in random order, one group per peer per turn. A network address is limited to a
    number of groups that grows with every turn up to its cap, so that many keys of one network get no extra
    weight."""

    __slots__ = (
        "_but",
        "_draft",
        "_hands",
        "_keys",
        "_most_of_address",
        "_of_address",
        "_passed",
        "_per_key",
        "_weight",
        "_whole",
    )

    def __init__(
        self,
        draft: Draft,
        keys: Iterator[bytes | None],
        but: Sequence[Roster],
        weight: Weight,
        whole: float,
        per_key: int,
        of_address: int,
        most_of_address: int,
    ) -> None:
        self._draft = draft
        self._keys = keys
        self._but = but
        self._weight = weight
        self._whole = whole
        self._per_key = per_key
        self._of_address = of_address
        self._most_of_address = most_of_address
        self._hands: list[_Hand] = []
        self._passed: list[_Hand] = []

    def fill(self, most: int) -> None:
        """Adds groups until the batch has `most` or no more are found."""
        draft = self._draft
        if len(draft.groups) >= most:
            return
        self._first(most)
        while len(draft.groups) < most and draft.steps > 0 and (self._passed or self._hands):
            if self._passed:
                hands, self._passed = self._passed, []
            else:
                hands, self._hands = self._hands, []
                more = max(1, self._of_address // 2)
                self._of_address = min(self._of_address + more, self._most_of_address)
            self._again(hands, most)

    def _first(self, most: int) -> None:
        """Takes the first group of each peer. Usually the first one drawn is usable, and the peer needs no
        further state."""
        draft, but, weight, whole = self._draft, self._but, self._weight, self._whole
        families, since, has, groups = draft.families, draft.since, draft.given.has, draft.groups
        authors, own, random = draft.window.authors, draft.ask.key, draft.rng.random
        throws = range(0 if draft.narrow else _THROWS)
        of_address, steps = self._of_address, draft.steps
        for key in self._keys:
            if steps <= 0:
                break
            steps -= 1
            if key is None or key == own or (but and any(key in roster for roster in but)):
                continue
            likely = weight(key)
            if likely <= 0:
                continue
            author = authors[key]
            if likely < whole and random() * whole >= likely:
                self._passed.append(_Hand(draft, author))
                continue
            queue = author.queue
            slots, head = queue.slots, queue.head
            there = len(slots) - head
            for _ in throws:
                group = slots[head + int(random() * there)].group
                if group is None:
                    queue.tidy()
                    slots, head = queue.slots, queue.head
                    there = len(slots) - head
                elif group.arrived >= since and (families is None or group.family in families):
                    break
            else:
                queues = queues_of(author, families)
                if not queues:
                    continue
                group = _any(queues, since, random())
            if group is None or has(group.id):
                hand = _Hand(draft, author)
                draft.steps = steps
                self._take(hand, _FIRST_TRIES)
                steps = draft.steps
                self._hands.append(hand)
            elif draft.put(group, of_address):
                if self._per_key > 1:
                    self._hands.append(_Hand(draft, author, gave=1))
            elif draft.waits(group, of_address):
                self._hands.append(_Hand(draft, author, held=group))
            if len(groups) >= most:
                break
        draft.steps = steps

    def _again(self, hands: list[_Hand], most: int) -> None:
        """Takes one more group from each of these peers."""
        draft = self._draft
        for hand in hands:
            if len(draft.groups) < most and draft.steps > 0 and not hand.closed:
                self._take(hand, min(_LATER_TRIES, draft.steps))
        self._hands += [hand for hand in hands if not hand.closed]

    def _take(self, hand: _Hand, tries: int) -> None:
        """Adds the peer's next new group to the batch, examining at most `tries` groups. Keeps the group in
        `hand.held` while other peers of its address have to come first, and closes the peer when it has no more
        groups, a group does not fit, or it has given its maximum."""
        draft = self._draft
        for _ in range(tries):
            draft.steps -= 1
            group, hand.held = hand.held or next(hand.deal, _END), None
            if group is _END:
                hand.closed = True
                return
            if group is not None and not draft.given.has(group.id):
                if draft.waits(group, self._of_address) and self._of_address < self._most_of_address:
                    hand.held = group
                    return
                fits = draft.put(group, self._of_address)
                hand.gave += fits
                # if not, trying the peer's other groups would cost the next peers their turn
                hand.closed = not fits or hand.gave >= self._per_key
                return


def queues_of(author: Author, families: Families) -> list[GroupQueue]:
    """The author's queues in these families, or its queue of all groups."""
    return [author.queue] if families is None else author.queues(families)


def _any(queues: Sequence[GroupQueue], since: float, chance: float) -> StoredGroup | None:
    """Returns the group at a relative position (`chance` in [0, 1)) of these queues, from `since` on; None if
    it was removed or the queues are empty."""
    if len(queues) == 1:
        start, end = queues[0].span(since)
        return queues[0].slots[start + int(chance * (end - start))].group if start < end else None
    places = [(queue, *queue.span(since)) for queue in queues]
    total = sum([end - start for _, start, end in places])
    return _at(places, int(chance * total)) if total else None


def _dealt(author: Author, families: Families, since: float, rng: Random) -> Iterator[StoredGroup | None]:
    """Yields the author's groups in random order, each once; None for one that was removed."""
    places = [(queue, *queue.span(since)) for queue in queues_of(author, families)]
    for position in shuffled(sum([end - start for _, start, end in places]), rng):
        yield _at(places, position)


def _at(places: list[tuple[GroupQueue, int, int]], position: int) -> StoredGroup | None:
    for queue, start, end in places:
        if position < end - start:
            return queue.slots[start + position].group
        position -= end - start
    raise IndexError(position)


def shuffled(n: int, rng: Random) -> Iterator[int]:
    """Yields 0 to n - 1 in random order, computed lazily: Fisher-Yates shuffle that stores only the swapped
    positions.

    >>> sorted(shuffled(5, Random(1))), next(shuffled(10**12, Random(1))) < 10**12
    ([0, 1, 2, 3, 4], True)
    """
    moved: dict[int, int] = {}
    random, get = rng.random, moved.get
    for place in range(n):
        other = place + int(random() * (n - place))
        yield get(other, other)
        moved[other] = get(place, place)
