"""Words whose letters were swapped."""

from __future__ import annotations

from functools import cache

from app.sapo import library, reading
from app.sapo.families import contents
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.families.wording import replaced

_BEFORE = '"words": ["'


def _score(answer: str, entry: Entry) -> float:
    """1 for the words, in any case: a swap moves a capital along, as in `hTe`."""
    said = [word.lower() for word in reading.words(answer)]
    return float(answer.isascii() and said == [word.lower() for word in entry["metadata"]["original_words"]])


def _sound(entry: Entry) -> bool:
    """Whether something was swapped, and no word can be read as another one: `won` may be `now` or `own`."""
    metadata = entry["metadata"]
    words = metadata["original_words"]
    return (
        metadata["scrambled_words"] != words
        and all(word.isascii() for word in words)
        and _ambiguous().isdisjoint(_letters(word) for word in words)
    )


def _letters(word: str) -> str:
    return "".join(sorted(word.lower()))


@cache
def _ambiguous() -> frozenset[str]:
    """The letters, sorted, of every English word that has an anagram (the library's list: 30,177)."""
    with library.gym().data.get_data_file_path("anagrams.jsonl").open(encoding="utf-8") as lines:
        return frozenset(_letters(line.partition(_BEFORE)[2].partition('"')[0]) for line in lines)


def _work(entry: Entry) -> str:
    metadata = entry["metadata"]
    pairs = zip(metadata["scrambled_words"], metadata["original_words"], strict=True)
    return " ".join(f"{' '.join(scrambled)}: {' '.join(word)}." for scrambled, word in pairs)


FAMILY = Family(
    name="letter_jumble",
    title="Jumbled letters",
    kind=FamilyKind.WORDS,
    # Short words have anagrams: of five pairs of them less than one would be a question.
    levels=(
        dict(
            **dict(min_word_len=4, max_word_len=6, min_words=1, max_words=1),
            **dict(min_corruption_level=0.1, max_corruption_level=0.3),
        ),
        dict(
            **dict(min_word_len=6, max_word_len=8, min_words=1, max_words=1),
            **dict(min_corruption_level=0.2, max_corruption_level=0.5),
        ),
        dict(
            **dict(min_word_len=7, max_word_len=10, min_words=1, max_words=2),
            **dict(min_corruption_level=0.3, max_corruption_level=0.7),
        ),
        dict(
            **dict(min_word_len=8, max_word_len=12, min_words=2, max_words=3),
            **dict(min_corruption_level=0.5, max_corruption_level=0.9),
        ),
    ),
    content=lambda entry: contents.words(entry["metadata"]["original_words"]),
    wording=replaced(("unsramble", "unscramble"), ("the letter may", "the letters may")),
    score=_score,
    sound=_sound,
    work=_work,
)
