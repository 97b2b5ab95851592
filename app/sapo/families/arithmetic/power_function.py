"""Powers of decimal numbers, to three significant figures."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

from app.sapo import reading
from app.sapo.families.family import Entry, Family, FamilyKind

_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?")


def _power(entry: Entry) -> Fraction:
    metadata = entry["metadata"]
    return Fraction(str(metadata["base"])) ** int(metadata["exponent"])


def _rounded(value: Fraction, rounding: str = ROUND_HALF_UP) -> Decimal:
    context = Context(prec=3, rounding=rounding)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _score(answer: str, entry: Entry) -> float:
    """1 for the power to three figures, in scientific notation or plain. The library rounds the answer first,
    however long it is."""
    answer = answer.strip(reading.SPACE)
    return float(bool(_NUMBER.fullmatch(answer)) and Decimal(answer) == _rounded(_power(entry)))


def _sound(entry: Entry) -> bool:
    """Whether there is a power to compute and one way to round it, and the library, which uses floating point,
    found it."""
    exponent, power = entry["metadata"]["exponent"], _power(entry)
    one_way = _rounded(power) == _rounded(power, ROUND_HALF_DOWN)
    return abs(exponent) > 1 and one_way and _rounded(Fraction(entry["answer"])) == _rounded(power)


def _wording(entry: Entry) -> str:
    """With parentheses around a negative base: -3^2 is -9 by the usual rule."""
    return re.sub(r"(?<=Compute )(-[0-9.e-]+)\^", r"(\1)^", str(entry["question"]))


FAMILY = Family(
    name="power_function",
    title="Powers",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_base=1.0, max_base=10.0, min_exponent=2, max_exponent=2),
        dict(min_base=-10.0, max_base=10.0, min_exponent=2, max_exponent=3),
        dict(min_base=-100.0, max_base=100.0, min_exponent=2, max_exponent=5),
        dict(min_base=-1000.0, max_base=1000.0, min_exponent=2, max_exponent=8),
    ),
    content=lambda entry: (str(entry["metadata"]["base"]), int(entry["metadata"]["exponent"])),
    wording=_wording,
    score=_score,
    sound=_sound,
    solution=lambda entry: f"{_rounded(_power(entry)):.2e}",
)
