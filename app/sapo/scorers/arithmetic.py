"""Families whose answer is a number: sums to decimals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from math import gcd
from typing import Any

from app.sapo.scorers import reading
from app.sapo.scorers.expression import ExpressionError, evaluate

_SIGNIFICANT = re.compile(r"maximum of ([0-9]+) significant digits")


def integer(answer: str, entry: Mapping[str, Any]) -> float:
    """1 for the whole number that is the truth."""
    return float(reading.integer(answer) == int(entry["answer"]))


def equation(answer: str, entry: Mapping[str, Any]) -> float:
    """1 for the solution, alone or as `x = 4` with the question's own variable."""
    name, equals, value = answer.partition("=")
    if equals and name.strip(reading.SPACE) == entry["metadata"]["variable"]:
        answer = value
    return integer(answer, entry)


def fraction(answer: str, entry: Mapping[str, Any]) -> float:
    """1 for the fraction in lowest terms, in any style of the library; a whole number where the denominator is
    1. 0.25 for an equal fraction that is smaller than the question's, but not yet in lowest terms."""
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


def decimal(answer: str, entry: Mapping[str, Any]) -> float:
    """1 for the value rounded as the question asks. The library would accept a tenth more or less at level
    0."""
    return float(reading.decimal(answer) == Decimal(entry["answer"]))


def sound_expression(entry: Mapping[str, Any]) -> bool:
    """Whether exact arithmetic gives the truth. False in 1 % of level 4, where `/` was computed as floor
    division."""
    return _exactly(entry["metadata"]["expression"]) == int(entry["answer"])


def sound_equation(entry: Mapping[str, Any]) -> bool:
    """Whether the truth is the only solution. `0 = 0`, from a factor like 5 - 5, has every number as
    solution."""
    left, _, right = entry["metadata"]["equation"].partition("=")
    variable = entry["metadata"]["variable"]
    truth = int(entry["answer"])

    def difference(value: int) -> Fraction:
        values = {variable: Fraction(value)}
        return evaluate(left, values) - evaluate(right, values)

    return difference(truth) == 0 and difference(truth + 1) != 0


def sound_fraction(entry: Mapping[str, Any]) -> bool:
    """Whether the truth is in lowest terms; the library gives up after ten tries."""
    metadata = entry["metadata"]
    return gcd(metadata["simplified_numerator"], metadata["simplified_denominator"]) == 1


def sound_decimal(entry: Mapping[str, Any]) -> bool:
    """Whether the truth is the exact value rounded once, half up, as the question asks. The library rounds
    after every step and half to even: its truth is another one in 0.3 % of level 0 and 11 % of level 3."""
    question = entry["question"]
    digits = _SIGNIFICANT.search(question)
    value = _exactly(question.rpartition("\n")[2].removesuffix("= ?"))
    if digits is None or value is None:
        return False
    rounding = Context(prec=int(digits[1]), rounding=ROUND_HALF_UP)
    return rounding.divide(Decimal(value.numerator), Decimal(value.denominator)) == Decimal(entry["answer"])


def _exactly(expression: str) -> Fraction | None:
    try:
        return evaluate(expression)
    except ExpressionError:
        return None
