"""The prime numbers whose product a number is."""

from __future__ import annotations

import re

from app.sapo import reading
from app.sapo.families.family import Entry, Family, FamilyKind

_SHOWN = 12
"""Every question says how this number is written."""

_SIGN = re.compile(r"[×*x·]|\\times")


def _score(answer: str, entry: Entry) -> float:
    """1 for the prime factors in any order, each as often as it divides. The library reads `×` alone, pays for
    any other text and fails at what is no number."""
    read = [reading.integer(part) for part in _SIGN.split(answer)]
    factors = sorted(factor for factor in read if factor is not None)
    return float(len(factors) == len(read) and factors == entry["metadata"]["factors"])


def _sound(entry: Entry) -> bool:
    """Whether there is something to find: a prime number is its own factorization."""
    metadata = entry["metadata"]
    return len(metadata["factors"]) > 1 and metadata["number"] != _SHOWN


def _work(entry: Entry) -> str:
    rest, steps = entry["metadata"]["number"], []
    for factor in entry["metadata"]["factors"][:-1]:
        steps.append(f"{rest} / {factor} = {rest // factor}.")
        rest //= factor
    return " ".join(steps)


FAMILY = Family(
    name="prime_factorization",
    title="Prime factors",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_value=4, max_value=300),
        dict(min_value=20, max_value=600),
        dict(min_value=100, max_value=1000),
        dict(min_value=500, max_value=10_000),
    ),
    content=lambda entry: entry["metadata"]["number"],
    score=_score,
    sound=_sound,
    work=_work,
)
