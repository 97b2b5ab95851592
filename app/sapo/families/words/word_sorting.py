"""Words in the order of their characters, capitals before small letters, upward or downward."""

from __future__ import annotations

from app.sapo import reading
from app.sapo.families import contents
from app.sapo.families.family import Entry, Family, FamilyKind


def _score(answer: str, entry: Entry) -> float:
    """1 for exactly the words of the question in the order asked for. The library pays for each word that is in
    its place."""
    return float(reading.listed(answer) == entry["metadata"]["sorted_words"])


def _sound(entry: Entry) -> bool:
    """Whether all are words (the library's text has `_Forum_` and `aërial` too) that stand in another order
    than the one asked for."""
    metadata = entry["metadata"]
    words = metadata["transformed_words"]
    return (
        all(word.isascii() and word.isalpha() for word in words)
        and metadata["sorted_words"] == sorted(words, reverse=metadata["direction"] == "descending")
        and metadata["sorted_words"] != words
    )


def _work(entry: Entry) -> str:
    def initials(words: list[str]) -> str:
        return " ".join(word[0] for word in words)

    metadata = entry["metadata"]
    given, ordered = initials(metadata["transformed_words"]), initials(metadata["sorted_words"])
    return f"First letters: {given}. {metadata['direction'].capitalize()}: {ordered}."


FAMILY = Family(
    name="word_sorting",
    title="Sorting words",
    kind=FamilyKind.WORDS,
    levels=(
        dict(min_words=3, max_words=3, min_word_length=2, max_word_length=5),
        dict(min_words=4, max_words=5, min_word_length=3, max_word_length=7),
        dict(min_words=6, max_words=8, min_word_length=3, max_word_length=10),
        dict(min_words=9, max_words=14, min_word_length=3, max_word_length=12),
    ),
    content=lambda entry: contents.words(entry["metadata"]["transformed_words"]),
    score=_score,
    sound=_sound,
    work=_work,
)
