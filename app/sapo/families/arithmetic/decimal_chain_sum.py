"""Sums and differences of decimal numbers, worked from left to right."""

from __future__ import annotations

from decimal import Decimal

from app.sapo.families import contents, scores
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.reading.expression import exactly


def _sound(entry: Entry) -> bool:
    value = exactly(entry["metadata"]["expression"])
    return value is not None and value == Decimal(entry["answer"])


def _work(entry: Entry) -> str:
    first, *rest = entry["metadata"]["expression"].split()
    total, steps = Decimal(first), []
    for operator, term in zip(rest[::2], rest[1::2], strict=True):
        after = total + Decimal(term) if operator == "+" else total - Decimal(term)
        steps.append(f"{total} {operator} {term} = {after}.")
        total = after
    return " ".join(steps)


FAMILY = Family(
    name="decimal_chain_sum",
    title="Sums of decimals",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_terms=2, max_terms=2, min_digits=1, max_digits=1, min_decimal_places=1, max_decimal_places=1),
        dict(min_terms=2, max_terms=3, min_digits=1, max_digits=1, min_decimal_places=1, max_decimal_places=1),
        dict(min_terms=2, max_terms=4, min_digits=1, max_digits=2, min_decimal_places=1, max_decimal_places=2),
        dict(min_terms=3, max_terms=5, min_digits=1, max_digits=3, min_decimal_places=1, max_decimal_places=3),
        dict(min_terms=4, max_terms=6, min_digits=1, max_digits=4, min_decimal_places=1, max_decimal_places=4),
    ),
    content=lambda entry: contents.calculation(entry["metadata"]["expression"], entry["answer"]),
    score=scores.decimal,
    sound=_sound,
    work=_work,
)
