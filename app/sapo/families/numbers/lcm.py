"""The least number that all of the numbers divide."""

from __future__ import annotations

from math import prod

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, FamilyKind


def _work(entry: Entry) -> str:
    """Multiples of the largest until the others divide one."""
    *others, largest = sorted(entry["metadata"]["numbers"])
    multiples = [largest]
    while any(multiples[-1] % other for other in others) and len(multiples) < 12:
        multiples.append(multiples[-1] + largest)
    result = int(entry["answer"])
    checks = " ".join(f"{result} = {result // other} * {other}." for other in others)
    return f"{', '.join(map(str, multiples))}. {checks}"


def _sort(entry: Entry) -> str:
    numbers, truth = entry["metadata"]["numbers"], int(entry["answer"])
    return "larger" if truth == max(numbers) else "product" if truth == prod(numbers) else ""


FAMILY = Family(
    name="lcm",
    title="Least common multiple",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_value=2, max_value=30),
        dict(min_value=4, max_value=40),
        dict(min_value=10, max_value=99),
        dict(min_value=20, max_value=300),
        dict(min_numbers=2, max_numbers=3, min_value=10, max_value=300),
    ),
    content=lambda entry: tuple(sorted(entry["metadata"]["numbers"])),
    sort=_sort,
    shortcuts={"product": lambda entry: str(prod(entry["metadata"]["numbers"]))},
    score=scores.integer,
    work=_work,
    thinned=({"larger": 0.55, "product": 0.8}, {"product": 0.95}, {"product": 0.94}),
)
