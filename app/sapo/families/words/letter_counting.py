"""How often a letter stands in some words."""

from __future__ import annotations

from app.sapo.families import contents, scores
from app.sapo.families.family import Entry, Family, FamilyKind


def _sound(entry: Entry) -> bool:
    """Whether it is a letter that is asked for and its count is the same with and without capitals."""
    metadata = entry["metadata"]
    letter = metadata["target_letter"]
    return "a" <= letter <= "z" and "".join(metadata["span"]).count(letter) == int(entry["answer"])


def _work(entry: Entry) -> str:
    letter = entry["metadata"]["target_letter"].lower()
    return ", ".join(f"{word} {word.lower().count(letter)}" for word in entry["metadata"]["span"]) + "."


FAMILY = Family(
    name="letter_counting",
    title="Counting letters",
    kind=FamilyKind.WORDS,
    levels=(
        # Of three to five words nearly every letter stands there once or twice.
        dict(min_words=5, max_words=8),
        dict(min_words=8, max_words=12),
        dict(min_words=10, max_words=20),
    ),
    content=lambda entry: (entry["metadata"]["target_letter"], contents.words(entry["metadata"]["span"])),
    score=scores.integer,
    sound=_sound,
    work=_work,
    thinned=(
        {"1": 0.06, "2": 0.1, "3": 0.19, "4": 0.39, "5": 0.88},
        {"1": 0.22, "2": 0.3, "3": 0.46, "4": 0.7},
        {"1": 0.5, "2": 0.64, "3": 0.87},
    ),
)
