"""Fractions, equations, powers, and numbers that are hexadecimal or complex."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from math import gcd
from random import Random
from string import ascii_lowercase
from typing import Any

from app.sapo import reading
from app.sapo.families import contents, scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.families.wording import replaced
from app.sapo.reading.expression import evaluate

# Fractions to lowest terms, plain or in LaTeX.


def _fraction_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the fraction in lowest terms, in any style of the library, or a whole number if the
    denominator is 1; 0.25 for an equal fraction that is smaller than the question's but not in lowest terms."""
    metadata = entry["metadata"]
    truth = (metadata["simplified_numerator"], metadata["simplified_denominator"])
    found = reading.fraction(answer)
    if found is None:
        whole = reading.integer(answer)
        return float(truth[1] == 1 and whole == truth[0])
    if found == truth:
        return 1.0
    equal = found[1] != 0 and found[0] * truth[1] == truth[0] * found[1]
    return 0.25 if equal and found[1] < metadata["denominator"] else 0.0


def _fraction_sound(entry: Entry) -> bool:
    """Whether the true answer is in lowest terms; the library gives up after ten tries."""
    metadata = entry["metadata"]
    return gcd(metadata["simplified_numerator"], metadata["simplified_denominator"]) == 1


def _fraction_work(entry: Entry) -> str:
    meta = entry["metadata"]
    factor = meta["reduction_factor"]
    parts = (("numerator", "simplified_numerator"), ("denominator", "simplified_denominator"))
    return " ".join(f"{meta[whole]} / {factor} = {meta[part]}." for whole, part in parts)


FRACTION_SIMPLIFICATION = Family(
    name="fraction_simplification",
    title="Fractions",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_value=1, max_value=9, min_factor=2, max_factor=9, styles=("plain",)),
        dict(min_value=2, max_value=20, min_factor=2, max_factor=12, styles=("plain",)),
        dict(min_value=2, max_value=60, min_factor=2, max_factor=40),
        dict(min_value=5, max_value=300, min_factor=2, max_factor=60),
        dict(min_value=1, max_value=1000, min_factor=2, max_factor=100),
    ),
    content=lambda entry: (entry["metadata"]["numerator"], entry["metadata"]["denominator"]),
    score=_fraction_score,
    sound=_fraction_sound,
    work=_fraction_work,
)


# Linear equations in one variable.

_EQUATION_ASKED = (
    "Find the value of {variable} in the equation: {equation}",
    "Solve for {variable}: {equation}",
    "Determine the value of {variable} that satisfies: {equation}",
)
_OPERATORS, _OPERATOR_WEIGHTS = ("+", "-", "*"), (0.4, 0.4, 0.2)


class _Equations:
    """Generates the library's items without sympy, whose import takes longer than all others in the child. An
    expression is (factor, constant): only one term has the variable, so every expression is linear."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.seed = 0
        self._terms = settings["min_terms"], settings["max_terms"]
        self._values = settings["min_value"], settings["max_value"]
        self._weights = settings.get("operators_weights", _OPERATOR_WEIGHTS)

    def __getitem__(self, index: int) -> Entry:
        rng = Random(self.seed + index)
        variable = rng.choice(ascii_lowercase)
        terms = [(0, rng.randint(*self._values)) for _ in range(rng.randint(*self._terms))]
        place = rng.randint(0, len(terms) - 1)
        terms[place] = (rng.randint(*self._values), 0)
        factor, constant = terms[0]
        for a, b in terms[1:]:
            match rng.choices(_OPERATORS, weights=self._weights, k=1)[0]:
                case "+":
                    factor, constant = factor + a, constant + b
                case "-":
                    factor, constant = factor - a, constant - b
                case _:
                    factor, constant = factor * b + a * constant, constant * b
        solution = rng.randint(*self._values)
        equation = f"{_linear(factor, constant, variable)} = {factor * solution + constant}"
        return {
            "question": rng.choice(_EQUATION_ASKED).format(variable=variable, equation=equation),
            "answer": str(solution),
            "metadata": {"equation": equation, "variable": variable},
        }


def _linear(factor: int, constant: int, variable: str) -> str:
    """Formats `factor * variable + constant` as sympy does: a positive number comes before a negative product.

    >>> _linear(3, -2, "x"), _linear(-1, 2, "x"), _linear(-1, -2, "x"), _linear(1, 0, "x"), _linear(0, 5, "x")
    ('3*x - 2', '2 - x', '-x - 2', 'x', '5')
    """
    if factor == 0:
        return str(constant)
    term = variable if abs(factor) == 1 else f"{abs(factor)}*{variable}"
    if constant == 0:
        return term if factor > 0 else f"-{term}"
    if factor < 0 < constant:
        return f"{constant} - {term}"
    return f"{'-' if factor < 0 else ''}{term} {'-' if constant < 0 else '+'} {abs(constant)}"


def _equation_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the solution, alone or as `x = 4` with the question's variable."""
    name, equals, value = answer.partition("=")
    if equals and name.strip(reading.SPACE) == entry["metadata"]["variable"]:
        answer = value
    return scores.integer(answer, entry)


def _equation_sound(entry: Entry) -> bool:
    """Whether the true answer is the only solution. `0 = 0`, from a factor like 5 - 5, is solved by every
    number."""
    left, _, right = entry["metadata"]["equation"].partition("=")
    variable = entry["metadata"]["variable"]
    truth = int(entry["answer"])

    def difference(value: int) -> Fraction:
        values = {variable: Fraction(value)}
        return evaluate(left, values) - evaluate(right, values)

    return difference(truth) == 0 and difference(truth + 1) != 0


def _equation_work(entry: Entry) -> str:
    variable = entry["metadata"]["variable"]
    left, right = entry["metadata"]["equation"].replace(" ", "").split("=")
    value, factor = int(right), 0
    for term in re.findall(r"[-+]?[^-+]+", left):
        if variable in term:
            digits = re.sub(r"[^-0-9]", "", term)
            factor += int(f"{digits}1") if digits in ("", "-") else int(digits)
        else:
            value -= int(term)
    moved = int(right) - value
    steps = [f"{right} {'-' if moved > 0 else '+'} {abs(moved)} = {value}."] if moved else []
    return " ".join([*steps, f"{value} / {factor} = {entry['answer']}."])


SIMPLE_EQUATIONS = Family(
    name="simple_equations",
    title="Equations",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_terms=2, max_terms=2, min_value=1, max_value=9, operators_weights=[0.5, 0.5, 0.0]),
        dict(min_terms=2, max_terms=3, min_value=1, max_value=20, operators_weights=[0.5, 0.5, 0.0]),
        dict(min_terms=2, max_terms=3, min_value=1, max_value=50),
        dict(min_terms=2, max_terms=4, min_value=1, max_value=100),
        dict(min_terms=3, max_terms=6, min_value=1, max_value=200),
    ),
    opened=_Equations,
    content=lambda entry: contents.calculation(entry["metadata"]["equation"], entry["answer"]),
    score=_equation_score,
    sound=_equation_sound,
    work=_equation_work,
)


# Powers of decimal numbers, to three significant figures.

_POWER_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?")


def _power(entry: Entry) -> Fraction:
    metadata = entry["metadata"]
    return Fraction(str(metadata["base"])) ** int(metadata["exponent"])


def _rounded(value: Fraction, rounding: str = ROUND_HALF_UP) -> Decimal:
    context = Context(prec=3, rounding=rounding)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _power_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the power to three significant figures, in scientific notation or plain. The library rounds
    the answer first, however long it is."""
    answer = answer.strip(reading.SPACE)
    return float(bool(_POWER_NUMBER.fullmatch(answer)) and Decimal(answer) == _rounded(_power(entry)))


def _power_sound(entry: Entry) -> bool:
    """Whether there is a power to compute, it rounds unambiguously, and the library's floating-point result is
    right."""
    exponent, power = entry["metadata"]["exponent"], _power(entry)
    one_way = _rounded(power) == _rounded(power, ROUND_HALF_DOWN)
    return abs(exponent) > 1 and one_way and _rounded(Fraction(entry["answer"])) == _rounded(power)


def _power_wording(entry: Entry) -> str:
    """Returns the question with parentheses around a negative base: -3^2 is -9 by the usual rule."""
    return re.sub(r"(?<=Compute )(-[0-9.e-]+)\^", r"(\1)^", str(entry["question"]))


POWER_FUNCTION = Family(
    name="power_function",
    title="Powers",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_base=1.0, max_base=10.0, min_exponent=2, max_exponent=2),
        dict(min_base=-10.0, max_base=10.0, min_exponent=2, max_exponent=3),
        dict(min_base=-100.0, max_base=100.0, min_exponent=2, max_exponent=5),
        dict(min_base=-1000.0, max_base=1000.0, min_exponent=2, max_exponent=8),
    ),
    content=lambda entry: (str(abs(entry["metadata"]["base"])), int(entry["metadata"]["exponent"])),
    wording=_power_wording,
    score=_power_score,
    sound=_power_sound,
    solution=lambda entry: f"{_rounded(_power(entry)):.2e}",
)


# Hexadecimal numbers added, subtracted, multiplied and shifted.

_HEXADECIMAL = re.compile(r"[+-]?0[xX][0-9a-fA-F]{1,64}")
_INNERMOST = re.compile(r"\((-?0x[0-9a-f]+) (\+|-|\*|<<|>>) (-?0x[0-9a-f]+)\)")


def _bitwise_value(problem: str) -> int | None:
    """Returns the value of the library's expression, evaluated from the innermost parentheses outwards.

    >>> _bitwise_value("((0x10 - 0x20) << 0x1)"), _bitwise_value("0x10 + 1")
    (-32, None)
    """
    while (innermost := _INNERMOST.search(problem)) is not None:
        problem = problem[: innermost.start()] + _bitwise_done(*innermost.groups()) + problem[innermost.end() :]
    return int(problem, 16) if _HEXADECIMAL.fullmatch(problem) else None


def _bitwise_done(left: str, operator: str, right: str) -> str:
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


def _bitwise_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the right value in hexadecimal, as the question asks, in either case and with or without
    leading zeros. Stricter than the library, which accepts any base."""
    answer = answer.strip(reading.SPACE)
    return float(bool(_HEXADECIMAL.fullmatch(answer)) and int(answer, 16) == int(entry["answer"], 16))


def _bitwise_sound(entry: Entry) -> bool:
    """Whether the value is the library's and differs from all numbers shown (a shift by 0 would repeat one)."""
    problem = entry["metadata"]["problem"]
    shown = re.findall(r"0x[0-9a-f]+", problem)
    return _bitwise_value(problem) == int(entry["answer"], 16) and entry["answer"] not in shown


BITWISE_ARITHMETIC = Family(
    name="bitwise_arithmetic",
    title="Hexadecimal arithmetic",
    kind=FamilyKind.NUMBERS,
    levels=tuple(dict(difficulty=depth) for depth in (1, 2, 3, 4)),
    content=lambda entry: contents.calculation(entry["metadata"]["problem"], entry["answer"]),
    wording=replaced(
        ("hexidecimal", "hexadecimal"), ("two's-compliment", "two's-complement"), ("(ex., ", "(e.g., ")
    ),
    score=_bitwise_score,
    sound=_bitwise_sound,
)


# Complex numbers added, subtracted, multiplied and divided.

_COMPLEX_NUMBER = r"[0-9]{1,40}(?:\.[0-9]{1,40})?"
_TERM = rf"(?:{_COMPLEX_NUMBER}i?|i)"
_COMPLEX = re.compile(rf"([+-]?{_TERM})(?:[ \t]*([+-])[ \t]*({_TERM}))?")


def _complex_read(answer: str) -> tuple[Decimal | int, Decimal | int] | None:
    """Parses a real and an imaginary term, both in any order or one of them, optionally in parentheses.

    >>> _complex_read("4.0 - 1i") == _complex_read("-i+4") == (4, -1), _complex_read("3")
    (True, (Decimal('3'), 0))
    >>> _complex_read("4 5i"), _complex_read("2i + 3i")
    (None, None)
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


def _complex_parts(entry: Entry) -> tuple[int, int, int, int]:
    """Returns real and imaginary part of the first number, then of the second."""
    (a, b), (c, d) = entry["metadata"]["num1"], entry["metadata"]["num2"]
    return int(a), int(b), int(c), int(d)


def _complex_truth(entry: Entry) -> tuple[int, int]:
    a, b, c, d = _complex_parts(entry)
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


def _complex_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the exact number. The library pays for being near it, and 1 for `nan`."""
    return float(_complex_read(answer) == _complex_truth(entry))


def _complex_sound(entry: Entry) -> bool:
    """Whether the true answer is the library's, and a quotient has whole parts."""
    a, b, c, d = _complex_parts(entry)
    real, imaginary = _complex_truth(entry)
    product = (real * c - imaginary * d, real * d + imaginary * c)
    exact = entry["metadata"]["operation"] != "/" or product == (a, b)
    return exact and _complex_read(entry["answer"]) == (real, imaginary)


def _complex_solution(entry: Entry) -> str:
    real, imaginary = _complex_truth(entry)
    if not imaginary:
        return str(real)
    if not real:
        return f"{imaginary}i"
    return f"{real} {'-' if imaginary < 0 else '+'} {abs(imaginary)}i"


def _complex_work(entry: Entry) -> str:
    """Returns the work: the real part first, then the imaginary one."""
    a, b, c, d = _complex_parts(entry)
    real, imaginary = _complex_truth(entry)
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
    """Formats a number for use inside a sum: in parentheses if it is negative."""
    return f"({number})" if number < 0 else str(number)


def _complex_level(least: int, most: int, operations: str) -> dict[str, object]:
    parts = dict(min_real=least, max_real=most, min_imag=least, max_imag=most)
    return parts | dict(
        operations=tuple(operations), operations_weights=[1 / len(operations)] * len(operations)
    )


def _complex_content(entry: Entry) -> Content:
    """Both numbers in any order, and the result."""
    a, b, c, d = _complex_parts(entry)
    return *sorted([(a, b), (c, d)]), _complex_truth(entry)


COMPLEX_ARITHMETIC = Family(
    name="complex_arithmetic",
    title="Complex numbers",
    kind=FamilyKind.NUMBERS,
    levels=(
        _complex_level(1, 9, "+"),
        _complex_level(1, 9, "+-"),
        _complex_level(-10, 10, "+-*"),
        _complex_level(-20, 20, "+-*/"),
    ),
    content=_complex_content,
    score=_complex_score,
    sound=_complex_sound,
    solution=_complex_solution,
    work=_complex_work,
)
