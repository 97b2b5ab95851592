"""The greatest number that divides all of the numbers."""

from __future__ import annotations

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, Kind


def _work(entry: Entry) -> str:
    numbers, divisor = entry["metadata"]["numbers"], int(entry["answer"])
    return " ".join(f"{number} = {divisor} * {number // divisor}." for number in numbers)


FAMILY = Family(
    name="gcd",
    title="Greatest common divisor",
    kind=Kind.NUMBERS,
    levels=(
        dict(min_value=2, max_value=30),
        dict(min_value=6, max_value=99),
        dict(min_value=20, max_value=300),
        dict(min_value=50, max_value=1000),
        dict(min_numbers=2, max_numbers=3, min_value=50, max_value=5000),
    ),
    score=scores.integer,
    work=_work,
    guess_rate=0.4,
)
