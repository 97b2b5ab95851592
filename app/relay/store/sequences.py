"""Sequence numbers that are used once: for each key its highest `key_seq` and which of the 1,024 below it have
come, as IPsec does against replay (RFC 4303, 3.4.3). A key costs one integer of 1,024 bits however long it
publishes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

SEQUENCE_WINDOW = 1024  # numbers that may arrive out of order: more than an outbox has in flight
_MASK = (1 << (SEQUENCE_WINDOW + 1)) - 1

Seen = Literal["new", "used", "behind"]


def mark_used(highest: int, came: int, number: int) -> tuple[int, int]:
    """Adds a number to a key's used numbers: returns the new highest number and the bit set of those below it
    (bit n: highest - n is used).

    >>> mark_used(0, 0, 7), mark_used(7, 0b1, 9), mark_used(9, 0b101, 8)
    ((7, 1), (9, 5), (9, 7))
    >>> mark_used(9, 0b111, 9 - SEQUENCE_WINDOW - 1)
    (9, 7)
    """
    if number > highest:
        ahead = number - highest
        came = (came << ahead if ahead <= SEQUENCE_WINDOW else 0) & _MASK
        highest = number
    if highest - number <= SEQUENCE_WINDOW:
        came |= 1 << (highest - number)
    return highest, came


class Sequences:
    """The used sequence numbers of the `keys` most recently active keys. A forgotten key starts from zero."""

    __slots__ = ("_keys", "_known")

    def __init__(self, keys: int = 50_000) -> None:
        self._keys = keys
        self._known: OrderedDict[bytes, tuple[int, int]] = OrderedDict()

    def check(self, key: bytes, number: int) -> Seen:
        """Tests whether a number may still be used (`new`), without recording it. `behind`: too far below the
        highest to be known.

        >>> sequences = Sequences()
        >>> sequences.use(b"ann", 5000)
        >>> [sequences.check(b"ann", number) for number in (5001, 5000, 4999, 3976, 3975)]
        ['new', 'used', 'new', 'new', 'behind']
        """
        highest, came = self._known.get(key, (0, 0))
        if number > highest:
            return "new"
        if highest - number > SEQUENCE_WINDOW:
            return "behind"
        return "used" if came >> (highest - number) & 1 else "new"

    def use(self, key: bytes, number: int) -> None:
        """Records a number as used. Does nothing for one too far below the highest."""
        self.put(key, *mark_used(*self._known.get(key, (0, 0)), number))

    def put(self, key: bytes, highest: int, came: int) -> None:
        """Sets all of a key's used numbers, in the form that `mark_used` returns."""
        self._known[key] = highest, came
        self._known.move_to_end(key)
        if len(self._known) > self._keys:
            self._known.popitem(last=False)

    def __contains__(self, key: bytes) -> bool:
        return key in self._known
