"""Content functions that several families share. A content identifies an item regardless of its wording, order,
brackets and form, and decides whether it is held out (`Family.content`). In doubt a content keeps less: holding
out two different items together is harmless, but one item with two contents could be trained on and measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

from app.sapo.families.family import Content

_NUMBER = re.compile(r"0x[0-9a-f]+|[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?")


def calculation(text: str, result: str) -> Content:
    """Returns the numbers of a calculation in any order and without signs, and its result.

    >>> calculation("( -7 - -6 )", "-1") == calculation("6 - 7", "-1"), calculation("7 + 6", "13")
    (True, ('6', '7', '=', '13'))
    >>> calculation("(0x1f << 0x2)", "0x7c"), calculation("1,000.50 + 2", "1002.50")
    (('0x1f', '0x2', '=', '0x7c'), ('1000.5', '2', '=', '1002.50'))
    """
    numbers = (one if one.startswith("0x") else _plain(one.replace(",", "")) for one in _NUMBER.findall(text))
    return *sorted(numbers), "=", result


def decimals(numbers: Iterable[str | Decimal]) -> Content:
    """Returns the numbers, normalised and sorted.

    >>> decimals(["12.0", "-3", "12"]) == decimals(["-3.00", "12", "12.00"])
    True
    """
    return tuple(sorted(map(_plain, numbers)))


def words(words: Iterable[str]) -> Content:
    """Returns the words, sorted and without case.

    >>> words(["Who", "am", "I"])
    ('am', 'i', 'who')
    """
    return tuple(sorted(word.lower() for word in words))


def cells(grid: Iterable[Sequence[str | int]]) -> Content:
    """Returns a grid as one string per row, its cells joined by spaces.

    >>> cells([[0, 1], [2, 3]]), cells(["ab"])
    (('0 1', '2 3'), ('a b',))
    """
    return tuple(" ".join(map(str, row)) for row in grid)


def _plain(number: str | Decimal) -> str:
    return f"{Decimal(number).normalize():f}"
