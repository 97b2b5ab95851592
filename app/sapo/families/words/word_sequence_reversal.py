"""Words in the opposite order."""

from __future__ import annotations

from app.sapo import reading
from app.sapo.families import contents
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.families.wording import replaced


def _score(answer: str, entry: Entry) -> float:
    """1 for the words from the last to the first, with commas between."""
    return float(reading.listed(answer) == entry["metadata"]["words"][::-1])


def _sound(entry: Entry) -> bool:
    """Whether all are words (the text of the library has `_Forum_` and `à` too), in an order that matters."""
    words = entry["metadata"]["words"]
    return all(word.isascii() and word.isalnum() for word in words) and words != words[::-1]


def _work(entry: Entry) -> str:
    numbered = [f"{number} {word}" for number, word in enumerate(entry["metadata"]["words"], 1)]
    return f"{' '.join(numbered)}. Back: {' '.join(numbered[::-1])}."


FAMILY = Family(
    name="word_sequence_reversal",
    title="Words backward",
    kind=FamilyKind.WORDS,
    levels=(
        dict(min_words=2, max_words=3),
        dict(min_words=4, max_words=5),
        dict(min_words=6, max_words=8),
        dict(min_words=9, max_words=14),
    ),
    content=lambda entry: contents.words(entry["metadata"]["words"]),
    wording=replaced(("Provide you answer", "Provide your answer")),
    score=_score,
    sound=_sound,
    work=_work,
)
