"""How many prime numbers lie between two numbers."""

from __future__ import annotations

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.families.wording import replaced


def _primes(entry: Entry) -> list[int]:
    first, last = entry["metadata"]["start"], entry["metadata"]["end"]
    return [n for n in range(max(first, 2), last + 1) if all(n % d for d in range(2, int(n**0.5) + 1))]


def _sound(entry: Entry) -> bool:
    return len(_primes(entry)) == int(entry["answer"])


def _work(entry: Entry) -> str:
    return f"{', '.join(map(str, _primes(entry))) or 'none'}."


FAMILY = Family(
    name="count_primes",
    title="Counting primes",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_n=1, max_n=30),
        dict(min_n=1, max_n=60),
        dict(min_n=1, max_n=120),
        dict(min_n=50, max_n=300),
        dict(min_n=100, max_n=1000),
    ),
    content=lambda entry: (entry["metadata"]["start"], entry["metadata"]["end"]),
    wording=replaced((" ?", "?")),
    score=scores.integer,
    sound=_sound,
    work=_work,
    thinned=({"0": 0.6, "1": 0.4}, {"0": 0.9, "1": 0.6}),
)
