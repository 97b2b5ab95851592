"""Words in a list, a story or a ladder."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

from app.sapo import library, reading
from app.sapo.families import contents, scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.families.wording import replaced

# Words in the opposite order.


def _reversal_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the words in reverse order, separated by commas."""
    return float(reading.split_at_commas(answer) == entry["metadata"]["words"][::-1])


def _reversal_sound(entry: Entry) -> bool:
    """Whether all are words (the library's text also has `_Forum_` and `à`), and reversing changes their
    order.
    """
    words = entry["metadata"]["words"]
    return all(word.isascii() and word.isalnum() for word in words) and words != words[::-1]


def _reversal_work(entry: Entry) -> str:
    numbered = [f"{number} {word}" for number, word in enumerate(entry["metadata"]["words"], 1)]
    return f"{' '.join(numbered)}. Back: {' '.join(numbered[::-1])}."


WORD_SEQUENCE_REVERSAL = Family(
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
    score=_reversal_score,
    sound=_reversal_sound,
    work=_reversal_work,
)


# Words in the order of their characters, capitals before small letters, upward or downward.


def _sorting_score(answer: str, entry: Entry) -> float:
    """Scores 1 for exactly the words of the question in the requested order. The library pays for each word in
    its place."""
    return float(reading.split_at_commas(answer) == entry["metadata"]["sorted_words"])


def _sorting_sound(entry: Entry) -> bool:
    """Whether all are words (the library's text also has `_Forum_` and `aërial`) that are not already in the
    requested order."""
    metadata = entry["metadata"]
    words = metadata["transformed_words"]
    return (
        all(word.isascii() and word.isalpha() for word in words)
        and metadata["sorted_words"] == sorted(words, reverse=metadata["direction"] == "descending")
        and metadata["sorted_words"] != words
    )


def _sorting_work(entry: Entry) -> str:
    def initials(words: list[str]) -> str:
        return " ".join(word[0] for word in words)

    metadata = entry["metadata"]
    given, ordered = initials(metadata["transformed_words"]), initials(metadata["sorted_words"])
    return f"First letters: {given}. {metadata['direction'].capitalize()}: {ordered}."


WORD_SORTING = Family(
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
    score=_sorting_score,
    sound=_sorting_sound,
    work=_sorting_work,
)


# One statement to be found among many: who likes or hates a thing.

_HAYSTACK_ASKED = re.compile(r"Who (.+)\? Reply only with a name\.")


_WITHOUT = {"yearns": "for", "pines": "for", "exults": "in", "dotes": "on"}
"""The library's verbs whose preposition is missing in half of the statements."""
_LACKING = re.compile(r"\b(yearns|pines|exults|dotes) (?!for |in |on )")


def _haystack_wording(entry: Entry) -> str:
    text = _LACKING.sub(lambda verb: f"{verb[1]} {_WITHOUT[verb[1]]} ", str(entry["question"]))
    return re.sub(
        r"\b(burger|sandwich)(?=[.?])", lambda food: f"{food[1]}{'es' if food[1][-1] == 'h' else 's'}", text
    ).replace(". \n", ".\n")


def _fitting(entry: Entry) -> list[str]:
    """Returns the statements that answer the question, without their full stops."""
    statements, _, question = _haystack_wording(entry).rpartition("\n")
    asked = _HAYSTACK_ASKED.fullmatch(question)
    if asked is None:
        return []
    return [one for one in statements.strip().rstrip(".").split(". ") if one.endswith(f" {asked[1]}")]


def _haystack_sound(entry: Entry) -> bool:
    """Whether exactly one statement answers the question, and with its first word."""
    fitting = _fitting(entry)
    return len(fitting) == 1 and fitting[0].split(" ")[0] == entry["answer"]


def _haystack_work(entry: Entry) -> str:
    return f"{_fitting(entry)[0]}."


def _haystack_content(entry: Entry) -> Content:
    """Returns the statement that answers the question; all other statements are distractors."""
    return _fitting(entry)[0]


NEEDLE_HAYSTACK = Family(
    name="needle_haystack",
    title="Needle in a haystack",
    kind=FamilyKind.WORDS,
    # With fewer than five statements the first name of all would be right too often.
    levels=(
        dict(min_num_statements=5, max_num_statements=6),
        dict(min_num_statements=8, max_num_statements=14),
        dict(min_num_statements=20, max_num_statements=30),
        dict(min_num_statements=40, max_num_statements=60),
    ),
    content=_haystack_content,
    wording=_haystack_wording,
    score=scores.word,
    sound=_haystack_sound,
    work=_haystack_work,
)


# From one word to another, letter by letter, over words of a list.

_LADDER_ASKED = """Transform the word '{start}' into '{end}' by changing one letter at a time.
Use only these words, each at most once: {words}.
Give all words from '{start}' to '{end}', separated by commas."""

_FIRST_STEPS = 4
"""Minimum number of listed words that can be the first step, so that guessing it rarely helps."""


@cache
def _neighbours(letters: int) -> dict[str, list[str]]:
    """Returns each of the library's words of this length, with the words that differ from it in one letter."""
    with library.data_file("words.csv").open(encoding="utf-8") as lines:
        found = {(row[f"{letters}_letter"] or "").upper() for row in csv.DictReader(lines)} - {""}
    alike: dict[tuple[int, str], list[str]] = {}  # by the word without the letter at a place
    for word in found:
        for place in range(letters):
            alike.setdefault((place, word[:place] + word[place + 1 :]), []).append(word)
    return {
        word: sorted(
            near
            for place in range(letters)
            for near in alike[place, word[:place] + word[place + 1 :]]
            if near != word
        )
        for word in found
    }


class _Ladders:
    """Ladders of a fixed length over the library's words, drawn from seed + item alone. The library's own data
    set iterates over sets of strings, whose order differs between processes, and accepts any English word
    without saying which list decides. Here the question lists `words` words in alphabetical order: those of the
    ladder, and neighbours of these."""

    def __init__(self, letters: int, steps: int, words: int) -> None:
        self.seed = 0
        self._steps, self._listed = steps, words
        self._near = _neighbours(letters)
        self._starts = sorted(word for word, near in self._near.items() if len(near) >= _FIRST_STEPS)

    def __getitem__(self, index: int) -> Entry:
        rng = Random(self.seed + index)
        start = rng.choice(self._starts)
        before, ends = self._reached(start)
        ladder = [rng.choice(ends)]  # IndexError, and so no question, where no ladder is as long
        while ladder[-1] != start:
            ladder.append(before[ladder[-1]])
        ladder.reverse()
        # Some first steps that lead nowhere, and no second ladder of two steps: else any first step leads on.
        taken = {*ladder, *({*self._near[start]} & {*self._near[ladder[-1]]})}
        first = sorted({*self._near[start]} - taken)
        first = rng.sample(first, min(len(first), _FIRST_STEPS - 1))
        others = sorted({near for word in ladder[::2] for near in self._near[word]} - {*taken, *first})
        room = self._listed - len(ladder) - len(first)
        listed = sorted([*ladder, *first, *rng.sample(others, min(len(others), room))])
        question = _LADDER_ASKED.format(start=start, end=ladder[-1], words=", ".join(listed))
        return {
            "question": question,
            "answer": ",".join(ladder),
            "metadata": {"ladder": ladder, "words": listed},
        }

    def _reached(self, start: str) -> tuple[dict[str, str], list[str]]:
        """Returns each word within `steps` of the start, with the word before it on a shortest ladder; and the
        words exactly `steps` away."""
        before, edge = {start: start}, [start]
        for _ in range(self._steps):
            further = []
            for last in edge:
                for word in self._near[last]:
                    if word not in before:
                        before[word] = last
                        further.append(word)
            edge = further
        return before, edge


def _ladder_opened(settings: Mapping[str, Any]) -> _Ladders:
    return _Ladders(**settings)


def _differ(one: str, other: str) -> list[tuple[str, str]]:
    return [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]


def _ladder_score(answer: str, entry: Entry) -> float:
    """Scores 1 for any ladder of listed words from the first word to the last, in any case and of any
    length.
    """
    ladder = reading.split_at_commas(answer.upper()) if answer.isascii() else []
    first, *_, last = entry["metadata"]["ladder"]
    if ladder[:1] != [first] or ladder[-1:] != [last] or not {*ladder} <= {*entry["metadata"]["words"]}:
        return 0.0
    once = len(ladder) == len({*ladder})
    return float(once and all(len(_differ(*step)) == 1 for step in pairwise(ladder)))


def _first_steps(entry: Entry) -> list[str]:
    first, words = entry["metadata"]["ladder"][0], entry["metadata"]["words"]
    return [word for word in words if len(_differ(first, word)) == 1]


def _ladder_sound(entry: Entry) -> bool:
    return len(_first_steps(entry)) >= _FIRST_STEPS


def _ladder_work(entry: Entry) -> str:
    steps = []
    for one, other in pairwise(entry["metadata"]["ladder"]):
        [(old, new)] = _differ(one, other)
        steps.append(f"{one}, {old} to {new}: {other}.")
    return " ".join(steps)


def _ladder_content(entry: Entry) -> Content:
    """Returns the two ends in any order: a ladder can be climbed down too."""
    first, *_, last = entry["metadata"]["ladder"]
    return contents.words((first, last))


def _any_step(entry: Entry) -> str:
    first, *_, last = entry["metadata"]["ladder"]
    return f"{first},{_first_steps(entry)[0]},{last}"


WORD_LADDER = Family(
    name="word_ladder",
    title="Word ladders",
    kind=FamilyKind.WORDS,
    levels=(
        dict(letters=3, steps=2, words=12),
        dict(letters=3, steps=3, words=12),
        dict(letters=4, steps=3, words=12),
        dict(letters=4, steps=5, words=16),
        dict(letters=5, steps=5, words=16),
    ),
    opened=_ladder_opened,
    content=_ladder_content,
    shortcuts={"any first step": _any_step},
    score=_ladder_score,
    sound=_ladder_sound,
    work=_ladder_work,
)
