"""How many ones a number has in base two."""

from __future__ import annotations

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, FamilyKind


def _work(entry: Entry) -> str:
    return f"{entry['metadata']['number']} is {' '.join(entry['metadata']['binary'])}."


FAMILY = Family(
    name="count_bits",
    title="Counting bits",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_n=1, max_n=511),
        dict(min_n=64, max_n=1023),
        dict(min_n=1024, max_n=65535),
        dict(min_n=65536, max_n=2**31 - 1),
    ),
    content=lambda entry: entry["metadata"]["number"],
    score=scores.integer,
    work=_work,
    thinned=(
        {"3": 0.48, "4": 0.32, "5": 0.32, "6": 0.48},
        {"3": 0.83, "4": 0.43, "5": 0.32, "6": 0.32, "7": 0.65},
        {"7": 0.9, "8": 0.8, "9": 0.9},
    ),
)
