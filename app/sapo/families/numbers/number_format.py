"""The largest or the smallest of some numbers that are written in different ways."""

from __future__ import annotations

import re
from decimal import Decimal

from app.sapo import reading
from app.sapo.families import contents
from app.sapo.families.family import Content, Entry, Family, FamilyKind

_SCIENTIFIC = re.compile(r"[+-]?[0-9](?:\.[0-9]{1,20})?e[+-][0-9]{2}")
_THOUSANDTH = Decimal("0.001")
"""The numbers have three decimals; some show what floating point adds."""


def _read(text: str) -> Decimal | None:
    """A number as the questions write them, to the thousandth.

    >>> _read("1,234.5670000000002"), _read("1.234567000000000e+03"), _read("1e3")
    (Decimal('1234.567'), Decimal('1234.567'), None)
    """
    text = text.strip(reading.SPACE)
    number = Decimal(text) if _SCIENTIFIC.fullmatch(text) else reading.decimal(text)
    if number is None or abs(number) >= 10**12:
        return None
    return number.quantize(_THOUSANDTH)


def _numbers(entry: Entry) -> list[Decimal]:
    read = [_read(text) for text in entry["metadata"]["formatted_candidates"]]
    return [number for number in read if number is not None]


def _truth(entry: Entry) -> Decimal:
    return max(_numbers(entry)) if entry["metadata"]["size"] == "largest" else min(_numbers(entry))


def _score(answer: str, entry: Entry) -> float:
    """1 for the number in any of the ways. The library forgives a hundredth, which may be another one."""
    return float(_read(answer) == _truth(entry))


def _sound(entry: Entry) -> bool:
    """Whether every number can be read, one alone is it, and it is the library's."""
    numbers = _numbers(entry)
    readable = len(numbers) == len(entry["metadata"]["formatted_candidates"])
    return readable and numbers.count(_truth(entry)) == 1 and _score(entry["answer"], entry) == 1.0


def _plain(number: Decimal) -> str:
    return f"{number:f}".rstrip("0").removesuffix(".")


def _solution(entry: Entry) -> str:
    return _plain(_truth(entry))


def _work(entry: Entry) -> str:
    """All of them in one way, without decimals where those decide nothing."""
    numbers, truth = _numbers(entry), _truth(entry)
    whole = [str(int(number)) for number in numbers]
    decided = whole.count(str(int(truth))) == 1
    return f"{', '.join(whole if decided else map(_plain, numbers))}."


def _content(entry: Entry) -> Content:
    """The numbers in any order and form, and which of them is asked for."""
    return contents.decimals(_numbers(entry)), entry["metadata"]["size"]


FAMILY = Family(
    name="number_format",
    title="Number formats",
    kind=FamilyKind.NUMBERS,
    # Of fewer than six the last one is it too often: the library adds to the first, up or down.
    levels=(
        dict(min_num_candidates=6, max_num_candidates=6, min_n=1000, max_n=10_000),
        dict(min_num_candidates=6, max_num_candidates=8, min_n=1000, max_n=100_000),
        dict(min_num_candidates=7, max_num_candidates=10, min_n=1000, max_n=1_000_000),
        dict(min_num_candidates=8, max_num_candidates=12, min_n=1000, max_n=1_000_000_000),
    ),
    content=_content,
    score=_score,
    sound=_sound,
    solution=_solution,
    work=_work,
)
