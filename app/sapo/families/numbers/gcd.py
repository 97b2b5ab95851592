"""The greatest number that divides all of the numbers."""

from __future__ import annotations

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, FamilyKind


def _work(entry: Entry) -> str:
    numbers, divisor = entry["metadata"]["numbers"], int(entry["answer"])
    return " ".join(f"{number} = {divisor} * {number // divisor}." for number in numbers)


FAMILY = Family(
    name="gcd",
    title="Greatest common divisor",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_value=2, max_value=30),
        dict(min_value=6, max_value=99),
        dict(min_value=20, max_value=300),
        dict(min_value=50, max_value=1000),
        dict(min_numbers=2, max_numbers=3, min_value=50, max_value=5000),
    ),
    content=lambda entry: tuple(sorted(entry["metadata"]["numbers"])),
    score=scores.integer,
    work=_work,
    thinned=(
        {"1": 0.51, "2": 0.29, "3": 0.65},
        {"1": 0.49, "2": 0.35, "3": 0.79},
        {"1": 0.5, "2": 0.38, "3": 0.84},
        {"1": 0.49, "2": 0.37, "3": 0.81},
        {"1": 0.2, "2": 0.27, "3": 0.68},
    ),
)
