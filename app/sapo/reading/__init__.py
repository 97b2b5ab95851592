"""Strict parsers for untrusted text: numbers, lists and rows. Plain ASCII, bounded, never executed.

Accepted, because people and models write so: a sign, leading zeros, thousands commas in the right places, zeros
after the decimal point of an integer (`+05`, `1,000`, `5.0`), white space around. Rejected: digits of other
scripts, exponents, underscores, `nan` and `inf`, anything before or after the number.
"""

from __future__ import annotations

import re
from decimal import Decimal

SPACE = " \t\r\n"
"""White space allowed around an answer. A bare strip() would remove much more."""

_DIGITS = r"(?:[0-9]{1,40}|[0-9]{1,3}(?:,[0-9]{3}){1,12})"
_INTEGER = re.compile(rf"([+-]?{_DIGITS})(?:\.0{{1,40}})?")
_DECIMAL = re.compile(rf"[+-]?(?:{_DIGITS}(?:\.[0-9]{{1,40}})?|\.[0-9]{{1,40}})")
_ITEM = re.compile(r"(['\"]?)([+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?)\1")
_FRACTION = re.compile(
    r"(?P<dollar>\$?)\s*(?:([0-9]{1,40})\s*/\s*([0-9]{1,40})"
    r"|\\d?frac\s*\{\s*([0-9]{1,40})\s*\}\s*\{\s*([0-9]{1,40})\s*\})\s*(?P=dollar)",
    re.ASCII,
)
_CELL = "(?:0|[1-9][0-9]{0,2})"
_ROW = re.compile(rf"{_CELL}(?:(?:[ \t]*,[ \t]*|[ \t]+){_CELL})*")
_LISTED_ROW = re.compile(r"\[([^][]*)\]")


def integer(text: str) -> int | None:
    """
    >>> integer(" +1,005.0 "), integer("1e3"), integer("10,00"), integer("٣")
    (1005, None, None, None)
    """
    match = _INTEGER.fullmatch(text.strip(SPACE))
    return int(match[1].replace(",", "")) if match else None


def decimal(text: str) -> Decimal | None:
    """
    >>> decimal("-0.50"), decimal(".5"), decimal("5e-1"), decimal("NaN")
    (Decimal('-0.50'), Decimal('0.5'), None, None)
    """
    text = text.strip(SPACE)
    return Decimal(text.replace(",", "")) if _DECIMAL.fullmatch(text) else None


def fraction(text: str) -> tuple[int, int] | None:
    r"""Parses numerator and denominator as written, not reduced: plain, or as LaTeX `\frac` or `\dfrac`,
    with or without `$`.

    >>> fraction("6/8"), fraction(r"$\frac{6}{8}$"), fraction("$6/8"), fraction("6/8/1")
    ((6, 8), (6, 8), None, None)
    """
    match = _FRACTION.fullmatch(text.strip(SPACE))
    if match is None:
        return None
    _, a, b, c, d = match.groups()
    return int(a or c), int(b or d)


def numbers(text: str) -> list[Decimal] | None:
    """Parses a comma-separated list of numbers, each optionally in quotes, the whole optionally in square
    brackets.

    >>> numbers("['-1', '2.0']") == numbers("-1, 2") == [-1, 2], numbers("[1, 2"), numbers("1 2")
    (True, None, None)
    """
    text = text.strip(SPACE)
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    matches = [_ITEM.fullmatch(item.strip(SPACE)) for item in text.split(",")]
    found = [Decimal(match[2]) for match in matches if match]
    return found if len(found) == len(matches) else None


def words(text: str) -> list[str]:
    r"""Splits at white space (SPACE only).

    >>> words(" TO  BE\nOR"), words("TO\x1fBE")
    (['TO', 'BE', 'OR'], ['TO\x1fBE'])
    """
    return re.findall(rf"[^{SPACE}]+", text)


def rows(text: str) -> list[list[int]] | None:
    r"""Parses rows of small whole numbers: one line per row, separated by spaces or commas, without leading
    zeros; or a list of lists, or one row as a single list.

    >>> rows("0 1\n 1, 2 "), rows("[[0, 1],\n [1, 2]]"), rows("[0, 1]")
    ([[0, 1], [1, 2]], [[0, 1], [1, 2]], [[0, 1]])
    >>> rows("0 1\n\n1 2"), rows("02 1"), rows("[[0, 1]"), rows("[0 1] 2")
    (None, None, None, None)
    """
    text = text.strip(SPACE)
    if text.startswith("["):
        inner = text[1:-1] if text.startswith("[[") and text.endswith("]]") else text
        lines = _LISTED_ROW.findall(inner)
        if _LISTED_ROW.sub("", inner).replace(",", "", max(len(lines) - 1, 0)).strip(SPACE):
            return None
    else:
        lines = text.split("\n")
    lines = [line.strip(SPACE) for line in lines]
    if not lines or not all(_ROW.fullmatch(line) for line in lines):
        return None
    return [[int(number) for number in line.replace(",", " ").split()] for line in lines]


def split_at_commas(text: str) -> list[str]:
    r"""Splits at commas and removes the white space around the parts.

    >>> split_at_commas(" the, big ,cat\n"), split_at_commas("the big")
    (['the', 'big', 'cat'], ['the big'])
    """
    return [item.strip(SPACE) for item in text.split(",")]
