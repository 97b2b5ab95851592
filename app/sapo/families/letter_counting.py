"""How often a letter stands in some words."""

from __future__ import annotations

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, Kind


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
    kind=Kind.WORDS,
    levels=(
        dict(min_words=3, max_words=5),
        dict(min_words=5, max_words=10),
        dict(min_words=10, max_words=20),
    ),
    score=scores.integer,
    sound=_sound,
    work=_work,
    guess_rate=0.63,
)
