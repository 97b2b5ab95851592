"""Queues of groups in order of arrival, each with the number and bytes of the groups still in it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from operator import attrgetter

import msgspec

SITE_CHARS = 16
"""Number of characters of a blinded address that identify its wider network; see `RelayState.blind`."""
_ARRIVED = attrgetter("arrived")


def site(address: str) -> str:
    """The part of a blinded address that identifies its wider network.

    >>> site("8b1a9953c4611296-a827ccb0eea8a706"), site("8b1a9953c4611296")
    ('8b1a9953c4611296', '8b1a9953c4611296')
    """
    return address[:SITE_CHARS]


class StoredGroup(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A group in the window: its content id (a digest), publisher's public key, blinded address (which begins
    with its site), family and level, the exact bytes received, and its arrival (seconds of the relay's
    clock)."""

    id: bytes
    key: bytes
    address: str
    family: str
    level: int
    raw: bytes
    arrived: float


class Bounds(msgspec.Struct, frozen=True):
    """Maximum groups and bytes of a queue. One group always fits by count; bytes are never exceeded."""

    groups: int
    bytes: int

    def share(self, percent: int) -> Bounds:
        """The bounds reduced to `percent`.

        >>> Bounds(10_000, 1_000_000).share(5)
        Bounds(groups=500, bytes=50000)
        """
        return Bounds(max(1, self.groups * percent // 100), self.bytes * percent // 100)


class Slot(msgspec.Struct, gc=False):
    """A position in the queues. `group` is None once the group has been removed; the arrival stays, for the
    order."""

    group: StoredGroup | None
    arrived: float


class GroupQueue:
    """A queue of groups in order of arrival, with the number and bytes of those still present. After `tidy` the
    `slots` begin at `head` with the oldest group, and less than half of them are empty."""

    __slots__ = ("bytes", "groups", "head", "slots")

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self.head = 0
        self.groups = 0
        self.bytes = 0

    def tidy(self) -> None:
        """Moves `head` past empty slots, or removes all empty slots if they are more than half."""
        slots, head = self.slots, self.head
        if len(slots) > 2 * self.groups + 16:
            self.slots = [slot for slot in slots if slot.group is not None]
            self.head = 0
            return
        end = len(slots)
        while head < end and slots[head].group is None:
            head += 1
        self.head = head

    def oldest(self) -> Slot:
        """The first slot with a group. Raises IndexError if the queue is empty."""
        slot = self.slots[self.head]
        if slot.group is None:
            self.tidy()
            slot = self.slots[self.head]
        return slot

    def newest(self) -> StoredGroup | None:
        return next((slot.group for slot in reversed(self.slots) if slot.group is not None), None)

    def span(self, since: float) -> tuple[int, int]:
        """Start and end positions of the slots that arrived at `since` or later; some may be empty."""
        self.tidy()
        slots, head = self.slots, self.head
        if self.groups and slots[head].arrived >= since:
            return head, len(slots)
        return bisect_left(slots, since, head, key=_ARRIVED), len(slots)

    def __iter__(self) -> Iterator[StoredGroup]:
        return (slot.group for slot in self.slots if slot.group is not None)


class Roster:
    """A set of keys that can be drawn by position; adding and removing are O(1). Removing a key moves the last
    one to its position."""

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
    """One family in the window. `groups`: number of its groups; `peers`: keys that have some; `known`: those of
    them with standing; `addresses`: for each site, the number of levels in which it has groups."""

    __slots__ = ("addresses", "groups", "known", "peers")

    def __init__(self) -> None:
        self.groups = 0
        self.peers = Roster()
        self.known = Roster()
        self.addresses: dict[str, int] = {}


class Author:
    """The groups of one key in the window, all together and by family and level."""

    __slots__ = ("families", "key", "known", "queue")

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.known = False
        self.queue = GroupQueue()
        self.families: dict[str, dict[int, GroupQueue]] = {}

    def queues(self, families: Iterable[str]) -> list[GroupQueue]:
        """Returns the author's queues in these families, one per level. `families` must not repeat."""
        mine = self.families
        return [queue for family in families if family in mine for queue in mine[family].values()]
