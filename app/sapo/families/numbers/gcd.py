"""The greatest number that divides all of the numbers."""

from __future__ import annotations

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, FamilyKind


def _work(entry: Entry) -> str:
    numbers, divisor = entry["metadata"]["numbers"], int(entry["answer"])
    return " ".join(f"{number} = {divisor} * {number // divisor}." for number in numbers)


def _difference(entry: Entry) -> str:
    numbers = sorted(entry["metadata"]["numbers"])
    return str(numbers[-1] - numbers[-2])


def _sort(entry: Entry) -> str:
    if int(entry["answer"]) == min(entry["metadata"]["numbers"]):
        return "smaller"
    return "difference" if entry["answer"] == _difference(entry) else str(entry["answer"])


FAMILY = Family(
    name="gcd",
    title="Greatest common divisor",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_value=2, max_value=60),
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
        {"smaller": 0.42, "difference": 0.8, "1": 0.5, "2": 0.26, "3": 0.7},
        {"1": 0.53, "2": 0.37, "3": 0.82},
        {"1": 0.48, "2": 0.34, "3": 0.79},
        {"1": 0.41, "2": 0.3, "3": 0.71},
        {"1": 0.17, "2": 0.22, "3": 0.54},
    ),
)
