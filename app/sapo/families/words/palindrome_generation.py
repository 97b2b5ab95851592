"""Letters to be put so that they read the same from both ends."""

from __future__ import annotations

from collections import Counter

from app.sapo import reading
from app.sapo.families.family import Entry, Family, FamilyKind


def _score(answer: str, entry: Entry) -> float:
    """1 for any palindrome of exactly these letters, in any case."""
    found = answer.strip(reading.SPACE).lower()
    return float(
        answer.isascii() and found == found[::-1] and Counter(found) == Counter(entry["metadata"]["letters"])
    )


def _sound(entry: Entry) -> bool:
    """Whether the letters have to be moved at all."""
    letters = entry["metadata"]["letters"]
    return bool(letters != letters[::-1])


def _solution(entry: Entry) -> str:
    half, middle = _halved(entry)
    return f"{half}{middle}{half[::-1]}"


def _halved(entry: Entry) -> tuple[str, str]:
    """A letter of each pair, in the order of the question, and the letter without a partner."""
    counts = Counter(entry["metadata"]["letters"])
    pairs = "".join(letter * (count // 2) for letter, count in counts.items())
    return pairs, "".join(letter for letter, count in counts.items() if count % 2)


def _work(entry: Entry) -> str:
    half, middle = _halved(entry)
    pairs = " ".join(f"{letter}{letter}" for letter in half)
    alone = f" Middle: {middle}." if middle else ""
    return f"Pairs: {pairs}.{alone} Half: {half}, backward {half[::-1]}."


FAMILY = Family(
    name="palindrome_generation",
    title="Palindromes",
    kind=FamilyKind.WORDS,
    levels=(
        dict(min_length=3, max_length=4),
        dict(min_length=5, max_length=6),
        dict(min_length=7, max_length=9),
        dict(min_length=10, max_length=14),
    ),
    content=lambda entry: "".join(sorted(entry["metadata"]["letters"])),
    score=_score,
    sound=_sound,
    solution=_solution,
    work=_work,
)
