"""Fractions to lowest terms, plain or in LaTeX."""

from __future__ import annotations

from math import gcd

from app.sapo import reading
from app.sapo.families.family import Entry, Family, FamilyKind


def _score(answer: str, entry: Entry) -> float:
    """1 for the fraction in lowest terms, in any style of the library; a whole number where the denominator is
    1. 0.25 for an equal fraction that is smaller than the question's, but not yet in lowest terms."""
    metadata = entry["metadata"]
    truth = (metadata["simplified_numerator"], metadata["simplified_denominator"])
    found = reading.fraction(answer)
    if found is None:
        whole = reading.integer(answer)
        return float(truth[1] == 1 and whole == truth[0])
    if found == truth:
        return 1.0
    equal = found[1] != 0 and found[0] * truth[1] == truth[0] * found[1]
    return 0.25 if equal and found[1] < metadata["denominator"] else 0.0


def _sound(entry: Entry) -> bool:
    """Whether the truth is in lowest terms; the library gives up after ten tries."""
    metadata = entry["metadata"]
    return gcd(metadata["simplified_numerator"], metadata["simplified_denominator"]) == 1


def _work(entry: Entry) -> str:
    meta = entry["metadata"]
    factor = meta["reduction_factor"]
    parts = (("numerator", "simplified_numerator"), ("denominator", "simplified_denominator"))
    return " ".join(f"{meta[whole]} / {factor} = {meta[part]}." for whole, part in parts)


FAMILY = Family(
    name="fraction_simplification",
    title="Fractions",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_value=1, max_value=9, min_factor=2, max_factor=9, styles=("plain",)),
        dict(min_value=2, max_value=20, min_factor=2, max_factor=12, styles=("plain",)),
        dict(min_value=2, max_value=60, min_factor=2, max_factor=40),
        dict(min_value=5, max_value=300, min_factor=2, max_factor=60),
        dict(min_value=1, max_value=1000, min_factor=2, max_factor=100),
    ),
    content=lambda entry: (entry["metadata"]["numerator"], entry["metadata"]["denominator"]),
    score=_score,
    sound=_sound,
    work=_work,
    paper=True,
)
