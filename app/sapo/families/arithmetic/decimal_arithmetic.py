"""Expressions of decimal numbers, rounded to significant digits."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal

from app.sapo.families import contents, scores
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.reading.expression import exactly

_SIGNIFICANT = re.compile(r"maximum of ([0-9]+) significant digits")


def _sound(entry: Entry) -> bool:
    """Whether the truth is the exact value rounded once, half up, as the question asks. The library rounds
    after every step and half to even: its truth is another one in 0.3 % of level 0 and 11 % of level 3."""
    question = entry["question"]
    digits = _SIGNIFICANT.search(question)
    value = exactly(question.rpartition("\n")[2].removesuffix("= ?"))
    if digits is None or value is None:
        return False
    rounding = Context(prec=int(digits[1]), rounding=ROUND_HALF_UP)
    return rounding.divide(Decimal(value.numerator), Decimal(value.denominator)) == Decimal(entry["answer"])


FAMILY = Family(
    name="decimal_arithmetic",
    title="Decimals",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_num_decimal_places=1, max_num_decimal_places=1, min_terms=2, max_terms=2, precision=4),
        dict(min_num_decimal_places=1, max_num_decimal_places=2, min_terms=2, max_terms=3, precision=5),
        dict(min_num_decimal_places=1, max_num_decimal_places=3, min_terms=2, max_terms=4, precision=5),
        dict(min_num_decimal_places=1, max_num_decimal_places=3, min_terms=2, max_terms=6, precision=8),
    ),
    content=lambda entry: contents.calculation(entry["question"].rpartition("\n")[2], entry["answer"]),
    score=scores.decimal,  # the library would accept a tenth more or less at level 0
    sound=_sound,
    paper=True,
)
