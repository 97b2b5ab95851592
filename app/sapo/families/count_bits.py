"""How many ones a number has in base two."""

from __future__ import annotations

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, Kind


def _work(entry: Entry) -> str:
    return f"{entry['metadata']['number']} is {' '.join(entry['metadata']['binary'])}."


FAMILY = Family(
    name="count_bits",
    title="Counting bits",
    kind=Kind.NUMBERS,
    levels=(
        dict(min_n=1, max_n=63),
        dict(min_n=64, max_n=1023),
        dict(min_n=1024, max_n=65535),
        dict(min_n=65536, max_n=2**31 - 1),
    ),
    score=scores.integer,
    work=_work,
    guess_rate=0.36,
)
