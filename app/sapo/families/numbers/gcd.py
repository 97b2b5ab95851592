"""The greatest number that divides all of the numbers."""

from __future__ import annotations

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, FamilyKind


def _work(entry: Entry) -> str:
    numbers, divisor = entry["metadata"]["numbers"], int(entry["answer"])
    return " ".join(f"{number} = {divisor} * {number // divisor}." for number in numbers)


def _sort(entry: Entry) -> str:
    return "smaller" if int(entry["answer"]) == min(entry["metadata"]["numbers"]) else str(entry["answer"])


def _difference(entry: Entry) -> str:
    numbers = sorted(entry["metadata"]["numbers"])
    return str(numbers[-1] - numbers[-2])


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
    sort=_sort,
    shortcuts={"difference": _difference},
    score=scores.integer,
    work=_work,
    thinned=(
        {"smaller": 0.26, "1": 0.34, "2": 0.26, "3": 0.81},
        {"1": 0.59, "2": 0.39, "3": 0.87},
        {"1": 0.58, "2": 0.4, "3": 0.93},
        {"1": 0.52, "2": 0.37, "3": 0.89},
        {"1": 0.22, "2": 0.28, "3": 0.68},
    ),
)
