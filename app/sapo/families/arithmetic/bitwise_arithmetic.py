"""Hexadecimal numbers added, subtracted, multiplied and shifted."""

from __future__ import annotations

import re

from app.sapo import reading
from app.sapo.families import contents
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.families.wording import replaced

_HEXADECIMAL = re.compile(r"[+-]?0[xX][0-9a-fA-F]{1,64}")
_INNERMOST = re.compile(r"\((-?0x[0-9a-f]+) (\+|-|\*|<<|>>) (-?0x[0-9a-f]+)\)")


def _value(problem: str) -> int | None:
    """What the library's expression comes to, from the innermost parentheses outwards.

    >>> _value("((0x10 - 0x20) << 0x1)"), _value("0x10 + 1")
    (-32, None)
    """
    while (innermost := _INNERMOST.search(problem)) is not None:
        problem = problem[: innermost.start()] + _done(*innermost.groups()) + problem[innermost.end() :]
    return int(problem, 16) if _HEXADECIMAL.fullmatch(problem) else None


def _done(left: str, operator: str, right: str) -> str:
    a, b = int(left, 16), int(right, 16)
    match operator:
        case "+":
            return hex(a + b)
        case "-":
            return hex(a - b)
        case "*":
            return hex(a * b)
        case "<<":
            return hex(a << b)
        case _:
            return hex(a >> b)


def _score(answer: str, entry: Entry) -> float:
    """1 for the value, hexadecimal as the question asks, in capitals or not, with zeros before it or not. The
    library takes any base."""
    answer = answer.strip(reading.SPACE)
    return float(bool(_HEXADECIMAL.fullmatch(answer)) and int(answer, 16) == int(entry["answer"], 16))


def _sound(entry: Entry) -> bool:
    """Whether the value is the library's and none of the numbers shown, as after a shift by 0."""
    problem = entry["metadata"]["problem"]
    shown = re.findall(r"0x[0-9a-f]+", problem)
    return _value(problem) == int(entry["answer"], 16) and entry["answer"] not in shown


FAMILY = Family(
    name="bitwise_arithmetic",
    title="Hexadecimal arithmetic",
    kind=FamilyKind.NUMBERS,
    levels=tuple(dict(difficulty=depth) for depth in (1, 2, 3, 4)),
    content=lambda entry: contents.calculation(entry["metadata"]["problem"], entry["answer"]),
    wording=replaced(
        ("hexidecimal", "hexadecimal"), ("two's-compliment", "two's-complement"), ("(ex., ", "(e.g., ")
    ),
    score=_score,
    sound=_sound,
)
