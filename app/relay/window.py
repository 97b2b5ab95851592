"""The window: the recent informative groups a relay can give out, family by family and level by level.

Every group stands in several lines, each in order of arrival: the whole window, its shelf (family and level),
and within the shelf those of its publisher's key and of its network address. Each of these is bounded in groups
and in bytes, and a line that overflows loses its own oldest: who publishes much pushes out what they published
themselves. Leaving is O(1): the slot is emptied once for all lines, and a line is rebuilt when empty slots
outnumber full ones.

A group is kept as the exact bytes that arrived, because its id and signature are over exact bytes. Its age
counts from its arrival by the relay's clock; a publisher's clock is not asked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from operator import attrgetter
from typing import Literal

import msgspec

Clock = Callable[[], float]
"""Seconds since any fixed moment, never going back: `time.monotonic` in a running relay."""
Shelf = tuple[str, int]
"""A family and a level."""
Part = str | Shelf
"""What can be asked for: a family, or one level of it."""
Added = Literal["accepted", "duplicate", "too-large"]

_ARRIVED = attrgetter("arrived")


class Kept(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A group in the window: its content id (a digest), its publisher's public key and network address as a
    bucket, what it answers, the exact bytes received, and when they came (seconds)."""

    id: bytes
    key: bytes
    address: str
    family: str
    level: int
    raw: bytes
    arrived: float


class Bounds(msgspec.Struct, frozen=True):
    """The most that a line may hold. One group always fits by count; bytes are never exceeded."""

    groups: int
    bytes: int

    def share(self, percent: int) -> Bounds:
        """
        >>> Bounds(10_000, 1_000_000).share(5)
        Bounds(groups=500, bytes=50000)
        """
        return Bounds(max(1, self.groups * percent // 100), self.bytes * percent // 100)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a window holds and for how long. `remembered` ids are refused as duplicates, also of groups that
    have left; it is at least the number of groups."""

    whole: Bounds = Bounds(50_000, 256 << 20)
    shelf: Bounds = Bounds(10_000, 48 << 20)
    key_percent: int = 5
    """Of a shelf, for one publisher."""
    address_percent: int = 25
    """Of a shelf, for all publishers at one address."""
    age_s: float = 3600.0
    remembered: int = 200_000
    remember_s: float = 3600.0
    """An id is remembered this long, and never less than its group is kept. It must exceed the age at which a
    group is stale by its own date, or others could send an old group in again for ever."""


class Slot:
    """A place in the lines. `group` is None once it has left; the moment of arrival stays for the order."""

    __slots__ = ("arrived", "group")

    def __init__(self, group: Kept) -> None:
        self.group: Kept | None = group
        self.arrived = group.arrived


class Line:
    """Groups in order of arrival, with how many and how many bytes are still there."""

    __slots__ = ("_head", "_slots", "bytes", "groups")

    def __init__(self) -> None:
        self._slots: list[Slot] = []
        self._head = 0
        self.groups = 0
        self.bytes = 0

    def append(self, slot: Slot, size: int) -> None:
        self._slots.append(slot)
        self.groups += 1
        self.bytes += size

    def emptied(self, size: int) -> None:
        """One of this line's slots has just been emptied: count it out and clear up behind it."""
        self.groups -= 1
        self.bytes -= size
        if len(self._slots) > 2 * self.groups + 16:
            self._slots = [slot for slot in self._slots if slot.group is not None]
            self._head = 0
        while self._head < len(self._slots) and self._slots[self._head].group is None:
            self._head += 1

    def oldest(self) -> Slot:
        """The first slot with a group. Raises IndexError in an empty line."""
        return self._slots[self._head]

    def newest(self) -> Kept | None:
        return next((slot.group for slot in reversed(self._slots) if slot.group is not None), None)

    def span(self, since: float | None = None) -> tuple[int, int]:
        """The positions from the oldest group, or the first that arrived at `since` or later, to the end; some
        may be empty."""
        slots = self._slots
        if since is None or (self.groups and slots[self._head].arrived >= since):
            return self._head, len(slots)
        return bisect_left(self._slots, since, self._head, key=_ARRIVED), len(self._slots)

    def at(self, position: int) -> Kept | None:
        return self._slots[position].group

    def over(self, bounds: Bounds) -> bool:
        return self.groups > bounds.groups or self.bytes > bounds.bytes

    def __iter__(self) -> Iterator[Kept]:
        return (slot.group for slot in self._slots if slot.group is not None)


class Roster:
    """Keys that can be drawn by position, entered and struck off in O(1). Positions change when one is struck
    off."""

    __slots__ = ("_keys", "_positions", "at")

    def __init__(self) -> None:
        self._keys: list[bytes] = []
        self._positions: dict[bytes, int] = {}
        self.at = self._keys.__getitem__

    def enter(self, key: bytes) -> None:
        if key not in self._positions:
            self._positions[key] = len(self._keys)
            self._keys.append(key)

    def strike(self, key: bytes) -> None:
        position, last = self._positions.pop(key), self._keys.pop()
        if last != key:
            self._keys[position] = last
            self._positions[last] = position

    def __contains__(self, key: bytes) -> bool:
        return key in self._positions

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._keys)


class Section:
    """One family or one shelf: its line, the line of each address in it, and the keys that have groups
    there."""

    __slots__ = ("addresses", "line", "peers")

    def __init__(self) -> None:
        self.line = Line()
        self.addresses: dict[str, Line] = {}
        self.peers = Roster()


class Author:
    """What one key has in the window: all of it, by family and by shelf."""

    __slots__ = ("line", "parts")

    def __init__(self) -> None:
        self.line = Line()
        self.parts: dict[Part, Line] = {}


class Window:
    """The recent groups. Raises ValueError when fewer ids would be remembered than groups are kept."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        if limits.remembered < limits.whole.groups:
            raise ValueError("A window must remember at least as many ids as it keeps groups.")
        self.limits = limits
        self._clock = clock
        self._key_bounds = limits.shelf.share(limits.key_percent)
        self._address_bounds = limits.shelf.share(limits.address_percent)
        self.largest = min(bounds.bytes for bounds in (limits.whole, self._address_bounds, self._key_bounds))
        """Bytes of a group that can be kept at all."""
        self._whole = Line()
        self._sections: dict[Part, Section] = {}
        self._authors: dict[bytes, Author] = {}
        self._addresses: dict[str, int] = {}
        self._seen: OrderedDict[bytes, Slot] = OrderedDict()
        self._latest = float("-inf")
        self.peers = Roster()

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
        """Take in a group that has been checked. `arrived` is for groups that came earlier by another way (a
        backfill); it is held between the newest arrival and now, so that the lines stay in order."""
        now = self._clock()
        self.expire()
        if id in self._seen:
            return "duplicate"
        if len(raw) > self.largest:
            return "too-large"
        self._latest = max(self._latest, now if arrived is None else min(arrived, now))
        slot = Slot(
            Kept(id=id, key=key, address=address, family=family, level=level, raw=raw, arrived=self._latest)
        )
        author = self._authors.get(key) or self._authors.setdefault(key, Author())
        lines = [self._whole, author.line]
        for part in (family, (family, level)):
            section = self._sections.get(part) or self._sections.setdefault(part, Section())
            own = author.parts.get(part) or author.parts.setdefault(part, Line())
            local = section.addresses.get(address) or section.addresses.setdefault(address, Line())
            lines += (section.line, own, local)
            section.peers.enter(key)
        for line in lines:
            line.append(slot, len(raw))
        self.peers.enter(key)
        self._addresses[address] = self._addresses.get(address, 0) + 1
        self._seen[id] = slot
        for line, bounds in (
            (own, self._key_bounds),
            (local, self._address_bounds),
            (section.line, self.limits.shelf),
            (self._whole, self.limits.whole),
        ):
            while line.over(bounds):
                self._leave(line.oldest())
        if len(self._seen) > self.limits.remembered:
            self._forget()
        return "accepted"

    def expire(self) -> None:
        """Let go of everything older than the window; adding and sampling do it by themselves."""
        now = self._clock()
        oldest = now - self.limits.age_s
        while self._whole.groups and self._whole.oldest().arrived < oldest:
            self._leave(self._whole.oldest())
        forgotten = now - max(self.limits.age_s, self.limits.remember_s)
        while self._seen and next(iter(self._seen.values())).arrived < forgotten:
            self._seen.popitem(last=False)

    def drop(self, id: bytes) -> bool:
        """Take one group out, for example for a false claim; its id stays refused. False if it was not
        there."""
        slot = self._seen.get(id)
        if slot is None or slot.group is None:
            return False
        self._leave(slot)
        return True

    def drop_key(self, key: bytes) -> int:
        """Take out everything of one publisher, and say how many groups that was."""
        author = self._authors.get(key)
        return sum(self.drop(group.id) for group in list(author.line)) if author is not None else 0

    def drop_address(self, address: str) -> int:
        """Take out everything published from one address, and say how many groups that was."""
        lines = [
            section.addresses[address]
            for part, section in self._sections.items()
            if isinstance(part, str) and address in section.addresses
        ]
        return sum(self.drop(group.id) for line in lines for group in list(line))

    def find(self, id: bytes) -> Kept | None:
        """None where it is not, or no longer, in the window."""
        slot = self._seen.get(id)
        return slot.group if slot is not None else None

    def knows(self, id: bytes) -> bool:
        """Whether it is refused as a duplicate: it is in the window, or was not long ago."""
        return id in self._seen

    def section(self, part: Part) -> Section | None:
        """None where nothing of it is in the window."""
        return self._sections.get(part)

    def author(self, key: bytes) -> Author:
        """Raises KeyError for a key that has no groups."""
        return self._authors[key]

    @property
    def addresses(self) -> Collection[str]:
        return self._addresses.keys()

    @property
    def size(self) -> int:
        """Bytes of all groups."""
        return self._whole.bytes

    @property
    def sizes(self) -> dict[Shelf, int]:
        """Groups on each shelf."""
        return {
            part: section.line.groups for part, section in self._sections.items() if isinstance(part, tuple)
        }

    def now(self) -> float:
        return self._clock()

    def __len__(self) -> int:
        return self._whole.groups

    def __contains__(self, id: bytes) -> bool:
        slot = self._seen.get(id)
        return slot is not None and slot.group is not None

    def __iter__(self) -> Iterator[Kept]:
        """Oldest first."""
        return iter(self._whole)

    def _leave(self, slot: Slot) -> None:
        group = slot.group
        assert group is not None
        slot.group = None
        size = len(group.raw)
        author = self._authors[group.key]
        self._whole.emptied(size)
        author.line.emptied(size)
        for part in (group.family, (group.family, group.level)):
            section, own = self._sections[part], author.parts[part]
            local = section.addresses[group.address]
            for line in (section.line, own, local):
                line.emptied(size)
            if not own.groups:
                del author.parts[part]
                section.peers.strike(group.key)
            if not local.groups:
                del section.addresses[group.address]
            if not section.line.groups:
                del self._sections[part]
        if not author.line.groups:
            del self._authors[group.key]
            self.peers.strike(group.key)
        self._addresses[group.address] -= 1
        if not self._addresses[group.address]:
            del self._addresses[group.address]

    def _forget(self) -> None:
        """Forget the oldest id; a group still in the window leaves with it, or it could come in twice."""
        _, slot = self._seen.popitem(last=False)
        if slot.group is not None:
            self._leave(slot)
