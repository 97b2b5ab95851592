"""A word from its last letter to its first."""

from __future__ import annotations

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, FamilyKind


def _work(entry: Entry) -> str:
    return " ".join(reversed(entry["metadata"]["word"])) + "."


FAMILY = Family(
    name="spell_backward",
    title="Backward spelling",
    kind=FamilyKind.WORDS,
    levels=(
        dict(min_word_len=3, max_word_len=4),
        dict(min_word_len=5, max_word_len=7),
        dict(min_word_len=7, max_word_len=9),
        dict(min_word_len=9, max_word_len=10),
    ),
    content=lambda entry: entry["metadata"]["word"].lower(),
    score=scores.word,
    work=_work,
)
