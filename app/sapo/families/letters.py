"""Letters of words: counting, reversing, shifting and sorting them."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from app.sapo import library, reading
from app.sapo.families import contents, scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.families.wording import replaced

# A word from its last letter to its first.


def _backward_work(entry: Entry) -> str:
    return " ".join(reversed(entry["metadata"]["word"])) + "."


SPELL_BACKWARD = Family(
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
    work=_backward_work,
)


# How often a letter stands in some words.


def _counting_sound(entry: Entry) -> bool:
    """Whether a letter is asked for and its count does not depend on case."""
    metadata = entry["metadata"]
    letter = metadata["target_letter"]
    return "a" <= letter <= "z" and "".join(metadata["span"]).count(letter) == int(entry["answer"])


def _counting_work(entry: Entry) -> str:
    letter = entry["metadata"]["target_letter"].lower()
    return ", ".join(f"{word} {word.lower().count(letter)}" for word in entry["metadata"]["span"]) + "."


def _counting_content(entry: Entry) -> Content:
    """Returns the letter and the words in any order; numbers among them are left out."""
    text = " ".join(entry["metadata"]["span"]).lower()
    return entry["metadata"]["target_letter"], contents.words(re.findall(r"[a-z]+", text))


LETTER_COUNTING = Family(
    name="letter_counting",
    title="Counting letters",
    kind=FamilyKind.WORDS,
    levels=(
        # Of three to five words nearly every letter stands there once or twice.
        dict(min_words=5, max_words=8),
        dict(min_words=8, max_words=12),
        dict(min_words=10, max_words=20),
    ),
    content=_counting_content,
    score=scores.integer,
    sound=_counting_sound,
    work=_counting_work,
    thinned=(
        {"1": 0.06, "2": 0.1, "3": 0.19, "4": 0.39, "5": 0.88},
        {"1": 0.22, "2": 0.3, "3": 0.46, "4": 0.7},
        {"1": 0.5, "2": 0.64, "3": 0.87},
    ),
)


# Text whose letters were moved along the alphabet.


def _caesar_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the clear text, in any case, because the cipher text is all capitals."""
    return float(answer.isascii() and " ".join(reading.words(answer.upper())) == entry["answer"])


def _caesar_sound(entry: Entry) -> bool:
    """Whether the cipher text decodes to the clear text (an É does not), and it is long enough to be
    recognised: half of level 0 is a single letter or `MR`, for which other rotations are just as good."""
    metadata = entry["metadata"]
    clear = "".join(
        chr((ord(character) - ord("A") - metadata["rotation"]) % 26 + ord("A")) if character != " " else " "
        for character in metadata["cipher_text"]
    )
    return clear == entry["answer"] and sum(character != " " for character in clear) >= 5


def _caesar_content(entry: Entry) -> Content:
    """Returns the plaintext. There are few, each with many rotations: a model that has seen one could recognise
    it instead of deciphering it."""
    return str(entry["answer"])


CAESAR_CIPHER = Family(
    name="caesar_cipher",
    title="Caesar cipher",
    kind=FamilyKind.WORDS,
    levels=(
        dict(min_words=1, max_words=6, min_rotation=1, max_rotation=3),
        dict(min_words=2, max_words=8, min_rotation=1, max_rotation=8),
        dict(min_words=3, max_words=12),
        dict(min_words=5, max_words=20),
    ),
    content=_caesar_content,
    score=_caesar_score,
    sound=_caesar_sound,
    held_out_share=3,  # the library's text has some 200 short sentences
)


# Letters to be put so that they read the same from both ends.


def _palindrome_score(answer: str, entry: Entry) -> float:
    """Scores 1 for any palindrome of exactly these letters, in any case."""
    found = answer.strip(reading.SPACE).lower()
    return float(
        answer.isascii() and found == found[::-1] and Counter(found) == Counter(entry["metadata"]["letters"])
    )


def _palindrome_sound(entry: Entry) -> bool:
    """Whether the letters have to be rearranged at all."""
    letters = entry["metadata"]["letters"]
    return bool(letters != letters[::-1])


def _palindrome_solution(entry: Entry) -> str:
    half, middle = _halved(entry)
    return f"{half}{middle}{half[::-1]}"


def _halved(entry: Entry) -> tuple[str, str]:
    """Returns one letter of each pair, in the order of the question, and the letter without a partner."""
    counts = Counter(entry["metadata"]["letters"])
    pairs = "".join(letter * (count // 2) for letter, count in counts.items())
    return pairs, "".join(letter for letter, count in counts.items() if count % 2)


def _palindrome_work(entry: Entry) -> str:
    half, middle = _halved(entry)
    pairs = " ".join(f"{letter}{letter}" for letter in half)
    alone = f" Middle: {middle}." if middle else ""
    return f"Pairs: {pairs}.{alone} Half: {half}, backward {half[::-1]}."


PALINDROME_GENERATION = Family(
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
    score=_palindrome_score,
    sound=_palindrome_sound,
    solution=_palindrome_solution,
    work=_palindrome_work,
)


# Words whose letters were swapped.

_BEFORE = '"words": ["'


def _jumble_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the words, in any case: a swap moves a capital along, as in `hTe`."""
    said = [word.lower() for word in reading.words(answer)]
    return float(answer.isascii() and said == [word.lower() for word in entry["metadata"]["original_words"]])


def _jumble_sound(entry: Entry) -> bool:
    """Whether something was swapped, and no word has an anagram: `won` may be `now` or `own`."""
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
    """Returns the sorted letters of every English word that has an anagram (from the library's list of 30,177
    words)."""
    with library.data_file("anagrams.jsonl").open(encoding="utf-8") as lines:
        return frozenset(_letters(line.partition(_BEFORE)[2].partition('"')[0]) for line in lines)


def _jumble_work(entry: Entry) -> str:
    metadata = entry["metadata"]
    pairs = zip(metadata["scrambled_words"], metadata["original_words"], strict=True)
    return " ".join(f"{' '.join(scrambled)}: {' '.join(word)}." for scrambled, word in pairs)


LETTER_JUMBLE = Family(
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
    score=_jumble_score,
    sound=_jumble_sound,
    work=_jumble_work,
)
