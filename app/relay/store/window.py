"""The window: the recent informative groups that a relay gives out, by family and level.

Every group is in five queues in order of arrival: the whole window, its shelf (family and level), on the shelf
those of its publisher's key and of its network, and all groups of its publisher. All but the last are bounded
in groups and bytes, and a queue that overflows loses its own oldest group: a publisher with many groups evicts
its own. Removal is O(1): the slot is emptied once for all queues, and each of them is tidied when it is next
used.

A group is kept as the exact bytes that arrived, because its id and signature are over exact bytes. Its age
counts from its arrival by the relay's clock, not by the publisher's."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Container, Iterator
from math import inf
from typing import Literal

import msgspec

from app.relay.store.queues import Author, Bounds, GroupQueue, Roster, Section, Slot, StoredGroup, site

Clock = Callable[[], float]
"""Seconds since any fixed moment, never going back: `time.monotonic` in a running relay."""
Shelf = tuple[str, int]
"""A family and a level."""
Added = Literal["accepted", "duplicate", "too-large"]


class WindowLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Size and age limits of a window. `remembered` ids are refused as duplicates, including those of groups
    that were removed; it must be at least the number of groups."""

    whole: Bounds = Bounds(50_000, 256 << 20)
    shelf: Bounds = Bounds(10_000, 48 << 20)
    key_percent: int = 5
    """Share of a shelf that one publisher may fill."""
    address_percent: int = 25
    """Share of a shelf that all publishers at one address may fill."""
    age_s: float = 3600.0
    remembered: int = 200_000
    remember_s: float = 3600.0
    """Seconds for which an id is remembered, at least as long as its group is kept. It must exceed the age at
    which a group is stale by its own date, or an old group could be published repeatedly."""


class _Shelf:
    __slots__ = ("addresses", "queue", "section")

    def __init__(self, section: Section) -> None:
        self.section = section
        self.queue = GroupQueue()
        self.addresses: dict[str, GroupQueue] = {}


class Window:
    """The recent groups. `known` are the keys with standing, as of each one's last group. Raises ValueError if
    fewer ids would be remembered than groups are kept."""

    def __init__(self, limits: WindowLimits, clock: Clock, known: Container[bytes] = frozenset()) -> None:
        if limits.remembered < limits.whole.groups:
            raise ValueError("A window must remember at least as many ids as it keeps groups.")
        self.limits = limits
        self._clock = clock
        self._trusted = known
        self._key_bounds = limits.shelf.share(limits.key_percent)
        self._address_bounds = limits.shelf.share(limits.address_percent)
        self.largest = min(bounds.bytes for bounds in (limits.whole, self._address_bounds, self._key_bounds))
        """Maximum size of a group in bytes."""
        self._remember_s = max(limits.age_s, limits.remember_s)
        self._whole = GroupQueue()
        self._shelves: dict[Shelf, _Shelf] = {}
        self._addresses: dict[str, int] = {}
        self._seen: OrderedDict[bytes, Slot] = OrderedDict()
        self._latest = float("-inf")
        self.sections: dict[str, Section] = {}
        """The families that have groups in the window."""
        self.authors: dict[bytes, Author] = {}
        self.peers = Roster()
        """The keys of `authors`."""
        self.known = Roster()
        """The keys of `authors` that are known."""

    def add(
        self,
        *,
        id: bytes,
        key: bytes,
        address: str,
        family: str,
        level: int,
        raw: bytes,
        arrived: float | None = None,
    ) -> Added:
        """Adds a group that has been checked. `arrived` is for groups that arrived earlier by another way (a
        backfill); it is clamped between the newest arrival and now, so that the queues stay in order."""
        now = self._clock()
        self._expire(now)
        if id in self._seen:
            return "duplicate"
        size = len(raw)
        if size > self.largest:
            return "too-large"
        self._latest = latest = max(self._latest, now if arrived is None else min(arrived, now))
        shelf = self._shelves.get((family, level)) or self._open_shelf(family, level)
        author = self.authors.get(key) or self._enter(key)
        if author.known != (key in self._trusted):
            self._rank(author)
        levels = author.families.get(family)
        own = levels.get(level) if levels is not None else None
        if own is None:
            own = author.families.setdefault(family, {}).setdefault(level, GroupQueue())
            shelf.section.peers.enter(key)
            if author.known:
                shelf.section.known.enter(key)
        where = site(address)
        local = shelf.addresses.get(where)
        if local is None:
            local = shelf.addresses[where] = GroupQueue()
            for addresses in (shelf.section.addresses, self._addresses):
                addresses[where] = addresses.get(where, 0) + 1
        slot = self._seen[id] = Slot(
            StoredGroup(
                id=id, key=author.key, address=address, family=family, level=level, raw=raw, arrived=latest
            ),
            latest,
        )
        shelf.section.groups += 1
        for queue in (self._whole, shelf.queue, author.queue, own, local):
            slots = queue.slots
            slots.append(slot)
            queue.groups = groups = queue.groups + 1
            queue.bytes += size
            if slots[queue.head].group is None or len(slots) > 2 * groups + 16:
                queue.tidy()
        for queue, bounds in (
            (own, self._key_bounds),
            (local, self._address_bounds),
            (shelf.queue, self.limits.shelf),
            (self._whole, self.limits.whole),
        ):
            while queue.groups > bounds.groups or queue.bytes > bounds.bytes:
                self._leave(queue.oldest())
        if len(self._seen) > self.limits.remembered:
            self._forget()
        return "accepted"

    def expire(self) -> None:
        """Removes everything older than the window; adding and sampling do so too."""
        self._expire(self._clock())

    def _expire(self, now: float) -> None:
        whole, seen = self._whole, self._seen
        oldest = now - self.limits.age_s
        while whole.groups and (slot := whole.oldest()).arrived < oldest:
            self._leave(slot)
        forgotten = now - self._remember_s
        while seen and seen[next(iter(seen))].arrived < forgotten:
            seen.popitem(last=False)

    def drop(self, id: bytes) -> bool:
        """Removes one group, for example for a false claim; its id stays refused. Returns False if it was not
        there."""
        slot = self._seen.get(id)
        if slot is None or slot.group is None:
            return False
        self._leave(slot)
        return True

    def drop_key(self, key: bytes, until: float = inf) -> int:
        """Removes the groups of one publisher that arrived up to `until`, and returns how many."""
        author = self.authors.get(key)
        if author is None:
            return 0
        return sum(self.drop(group.id) for group in list(author.queue) if group.arrived <= until)

    def drop_address(self, address: str) -> int:
        """Removes the groups published from one address, and returns how many."""
        where = site(address)
        queues = [shelf.addresses[where] for shelf in self._shelves.values() if where in shelf.addresses]
        return sum(self.drop(group.id) for queue in queues for group in list(queue) if group.address == address)

    def find(self, id: bytes) -> StoredGroup | None:
        """The group, or None if it is not in the window."""
        slot = self._seen.get(id)
        return slot.group if slot is not None else None

    def knows(self, id: bytes) -> bool:
        """True if the id would be refused as a duplicate: it is in the window, or was recently."""
        return id in self._seen

    def author(self, key: bytes) -> Author:
        """A key's groups. Raises KeyError if it has none."""
        return self.authors[key]

    @property
    def addresses(self) -> Collection[str]:
        return self._addresses.keys()

    @property
    def size(self) -> int:
        """Bytes of all groups."""
        return self._whole.bytes

    @property
    def sizes(self) -> dict[Shelf, int]:
        """Number of groups on each shelf."""
        return {name: shelf.queue.groups for name, shelf in self._shelves.items()}

    def now(self) -> float:
        return self._clock()

    def __len__(self) -> int:
        return self._whole.groups

    def __contains__(self, id: bytes) -> bool:
        slot = self._seen.get(id)
        return slot is not None and slot.group is not None

    def __iter__(self) -> Iterator[StoredGroup]:
        """Iterates over the groups, oldest first."""
        return iter(self._whole)

    def _open_shelf(self, family: str, level: int) -> _Shelf:
        section = self.sections.get(family) or self.sections.setdefault(family, Section())
        shelf = self._shelves[family, level] = _Shelf(section)
        return shelf

    def _enter(self, key: bytes) -> Author:
        author = self.authors[key] = Author(key)
        self.peers.enter(key)
        return author

    def _leave(self, slot: Slot) -> None:
        group = slot.group
        assert group is not None
        slot.group = None
        size, family, level, where = len(group.raw), group.family, group.level, site(group.address)
        shelf, author = self._shelves[family, level], self.authors[group.key]
        own, local = author.families[family][level], shelf.addresses[where]
        shelf.section.groups -= 1
        for queue in (self._whole, shelf.queue, author.queue, own, local):
            queue.groups -= 1
            queue.bytes -= size
        if not own.groups:
            self._strike(author, shelf.section, family, level)
        if not local.groups:
            del shelf.addresses[where]
            for addresses in (shelf.section.addresses, self._addresses):
                addresses[where] -= 1
                if not addresses[where]:
                    del addresses[where]
            if not shelf.queue.groups:
                del self._shelves[family, level]
                if not shelf.section.groups:
                    del self.sections[family]

    def _strike(self, author: Author, section: Section, family: str, level: int) -> None:
        """Removes an author without groups from a shelf."""
        levels = author.families[family]
        del levels[level]
        if levels:
            return
        del author.families[family]
        section.peers.strike(author.key)
        if author.known:
            section.known.strike(author.key)
        if not author.families:
            del self.authors[author.key]
            self.peers.strike(author.key)
            if author.known:
                self.known.strike(author.key)

    def _rank(self, author: Author) -> None:
        """Updates the rosters for an author that has gained or lost standing."""
        author.known = not author.known
        for roster in (self.known, *(self.sections[family].known for family in author.families)):
            (roster.enter if author.known else roster.strike)(author.key)

    def _forget(self) -> None:
        """Forgets the oldest id. A group still in the window is removed with it, or it could be added twice."""
        _, slot = self._seen.popitem(last=False)
        if slot.group is not None:
            self._leave(slot)
