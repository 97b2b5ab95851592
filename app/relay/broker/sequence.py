"""Numbers used once: for each key its highest `key_seq` and which of the 1,024 below it have come, as IPsec
does against replay (RFC 4303, 3.4.3). A key costs one integer of 1,024 bits however long it publishes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

BEHIND = 1024
_MASK = (1 << (BEHIND + 1)) - 1

Seen = Literal["new", "used", "behind"]


def used(highest: int, came: int, number: int) -> tuple[int, int]:
    """The highest number and the map of those below it (bit n: highest - n has come), with one number more.

    >>> used(0, 0, 7), used(7, 0b1, 9), used(9, 0b101, 8), used(9, 0b111, 9 - BEHIND - 1)
    ((7, 1), (9, 5), (9, 7), (9, 7))
    """
    if number > highest:
        ahead = number - highest
        came = (came << ahead if ahead <= BEHIND else 0) & _MASK
        highest = number
    if highest - number <= BEHIND:
        came |= 1 << (highest - number)
    return highest, came


class Sequences:
    """The numbers of the last `keys` keys heard of. A key that is forgotten begins again."""

    __slots__ = ("_keys", "_known")

    def __init__(self, keys: int = 50_000) -> None:
        self._keys = keys
        self._known: OrderedDict[bytes, tuple[int, int]] = OrderedDict()

    def look(self, key: bytes, number: int) -> Seen:
        """Whether a number may still be used. Nothing is remembered.

        >>> sequences = Sequences()
        >>> sequences.use(b"ann", 5000)
        >>> [sequences.look(b"ann", number) for number in (5001, 5000, 4999, 3976, 3975)]
        ['new', 'used', 'new', 'new', 'behind']
        """
        highest, came = self._known.get(key, (0, 0))
        if number > highest:
            return "new"
        if highest - number > BEHIND:
            return "behind"
        return "used" if came >> (highest - number) & 1 else "new"

    def use(self, key: bytes, number: int) -> None:
        """Remember a number, once it is certain. Nothing happens to one that has fallen behind meanwhile."""
        self.put(key, *used(*self._known.get(key, (0, 0)), number))

    def put(self, key: bytes, highest: int, came: int) -> None:
        """Remember all of a key's numbers, as `used` gives them."""
        self._known[key] = highest, came
        self._known.move_to_end(key)
        if len(self._known) > self._keys:
            self._known.popitem(last=False)

    def __contains__(self, key: bytes) -> bool:
        return key in self._known
