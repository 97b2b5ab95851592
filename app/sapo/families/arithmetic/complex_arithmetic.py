"""Complex numbers added, subtracted, multiplied and divided."""

from __future__ import annotations

import re
from decimal import Decimal

from app.sapo import reading
from app.sapo.families.family import Content, Entry, Family, FamilyKind

_NUMBER = r"[0-9]{1,40}(?:\.[0-9]{1,40})?"
_TERM = rf"(?:{_NUMBER}i?|i)"
_COMPLEX = re.compile(rf"([+-]?{_TERM})(?:[ \t]*([+-])[ \t]*({_TERM}))?")


def _read(answer: str) -> tuple[Decimal | int, Decimal | int] | None:
    """A real and an imaginary term, both in any order or one of them; in parentheses or not.

    >>> _read("4.0 - 1i") == _read("-i+4") == (4, -1), _read("3"), _read("4 5i"), _read("2i + 3i")
    (True, (Decimal('3'), 0), None, None)
    """
    answer = answer.strip(reading.SPACE)
    if answer.startswith("(") and answer.endswith(")"):
        answer = answer[1:-1]
    match = _COMPLEX.fullmatch(answer.strip(reading.SPACE))
    if match is None:
        return None
    terms = [match[1], *([match[2] + match[3]] if match[3] else [])]
    real = [Decimal(term) for term in terms if not term.endswith("i")]
    imaginary = [Decimal(re.sub(r"^([+-]?)i", r"\g<1>1i", term)[:-1]) for term in terms if term.endswith("i")]
    if len(real) > 1 or len(imaginary) > 1:
        return None
    return sum(real), sum(imaginary)


def _parts(entry: Entry) -> tuple[int, int, int, int]:
    """Real and imaginary part of the first number, then of the second."""
    (a, b), (c, d) = entry["metadata"]["num1"], entry["metadata"]["num2"]
    return int(a), int(b), int(c), int(d)


def _truth(entry: Entry) -> tuple[int, int]:
    a, b, c, d = _parts(entry)
    match entry["metadata"]["operation"]:
        case "+":
            return a + c, b + d
        case "-":
            return a - c, b - d
        case "*":
            return a * c - b * d, a * d + b * c
        case _:
            size = c * c + d * d
            return (a * c + b * d) // size, (b * c - a * d) // size


def _score(answer: str, entry: Entry) -> float:
    """1 for the number. The library pays for being near it, and 1 for `nan`."""
    return float(_read(answer) == _truth(entry))


def _sound(entry: Entry) -> bool:
    """Whether the truth is the library's, and a quotient has whole parts."""
    a, b, c, d = _parts(entry)
    real, imaginary = _truth(entry)
    product = (real * c - imaginary * d, real * d + imaginary * c)
    exact = entry["metadata"]["operation"] != "/" or product == (a, b)
    return exact and _read(entry["answer"]) == (real, imaginary)


def _solution(entry: Entry) -> str:
    real, imaginary = _truth(entry)
    if not imaginary:
        return str(real)
    if not real:
        return f"{imaginary}i"
    return f"{real} {'-' if imaginary < 0 else '+'} {abs(imaginary)}i"


def _work(entry: Entry) -> str:
    """First the real part, then the imaginary one."""
    a, b, c, d = _parts(entry)
    real, imaginary = _truth(entry)
    match entry["metadata"]["operation"]:
        case "+" | "-" as sign:
            return f"{a} {sign} {_in(c)} = {real}. {b} {sign} {_in(d)} = {imaginary}."
        case "*":
            left, right, down, up = a * c, b * d, a * d, b * c
            return (
                f"{a} * {_in(c)} = {left}. {b} * {_in(d)} = {right}. {left} - {_in(right)} = {real}. "
                f"{a} * {_in(d)} = {down}. {b} * {_in(c)} = {up}. {down} + {_in(up)} = {imaginary}."
            )
        case _:
            size, across, along = c * c + d * d, a * c + b * d, b * c - a * d
            return (
                f"{_in(c)} * {_in(c)} + {_in(d)} * {_in(d)} = {size}. "
                f"{a} * {_in(c)} + {b} * {_in(d)} = {across}. {across} / {size} = {real}. "
                f"{b} * {_in(c)} - {_in(a)} * {_in(d)} = {along}. {along} / {size} = {imaginary}."
            )


def _in(number: int) -> str:
    """A number inside a sum: in parentheses where it is negative."""
    return f"({number})" if number < 0 else str(number)


def _level(least: int, most: int, operations: str) -> dict[str, object]:
    parts = dict(min_real=least, max_real=most, min_imag=least, max_imag=most)
    return parts | dict(
        operations=tuple(operations), operations_weights=[1 / len(operations)] * len(operations)
    )


def _content(entry: Entry) -> Content:
    """Both numbers in any order, and the result."""
    a, b, c, d = _parts(entry)
    return *sorted([(a, b), (c, d)]), _truth(entry)


FAMILY = Family(
    name="complex_arithmetic",
    title="Complex numbers",
    kind=FamilyKind.NUMBERS,
    levels=(
        _level(1, 9, "+"),
        _level(1, 9, "+-"),
        _level(-10, 10, "+-*"),
        _level(-20, 20, "+-*/"),
    ),
    content=_content,
    score=_score,
    sound=_sound,
    solution=_solution,
    work=_work,
)
