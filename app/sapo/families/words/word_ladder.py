"""From one word to another, letter by letter, over words of a list."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from random import Random
from typing import Any

from app.sapo import library, reading
from app.sapo.families import contents
from app.sapo.families.family import Content, Entry, Family, FamilyKind

_ASKED = """Transform the word '{start}' into '{end}' by changing one letter at a time.
Use only these words, each at most once: {words}.
Give all words from '{start}' to '{end}', separated by commas."""


class _Ladders:
    """Ladders of a fixed length over the library's words, drawn from seed + item alone.

    The library's own data set iterates over sets of strings, whose order differs between processes, and accepts
    any English word without saying which list decides. Here the question lists the words: those of the ladder
    and `words` in all, the others neighbours of the ladder's, in alphabetical order."""

    def __init__(self, letters: int, steps: int, words: int) -> None:
        self.seed = 0
        self._steps, self._listed = steps, words
        settings = dict(min_word_length=letters, max_word_length=letters)
        data = library.gym().create_dataset("word_ladder", seed=0, size=1, **settings)
        self._near = {word: sorted(near) for word, near in data.word_graphs[letters].items()}
        self._words = sorted(self._near)

    def __getitem__(self, index: int) -> Entry:
        rng = Random(self.seed + index)
        start = rng.choice(self._words)
        before, ends = self._reached(start)
        ladder = [rng.choice(ends)]  # IndexError, and so no question, where no ladder is as long
        while ladder[-1] != start:
            ladder.append(before[ladder[-1]])
        ladder.reverse()
        # Dead ends of every other word alone, and no second way of two steps: else any first step leads on.
        both = {*self._near[start]} & {*self._near[ladder[-1]]}
        others = sorted({near for word in ladder[::2] for near in self._near[word]} - {*ladder, *both})
        listed = sorted([*ladder, *rng.sample(others, min(len(others), self._listed - len(ladder)))])
        question = _ASKED.format(start=start, end=ladder[-1], words=", ".join(listed))
        return {
            "question": question,
            "answer": ",".join(ladder),
            "metadata": {"ladder": ladder, "words": listed},
        }

    def _reached(self, start: str) -> tuple[dict[str, str], list[str]]:
        """Each word within `steps` of the start with the word before it on a shortest ladder, and the words
        exactly `steps` away."""
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


def _opened(settings: Mapping[str, Any]) -> _Ladders:
    return _Ladders(**settings)


def _differ(one: str, other: str) -> list[tuple[str, str]]:
    return [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]


def _score(answer: str, entry: Entry) -> float:
    """1 for any ladder of listed words from the first word to the last, in any case and of any length."""
    ladder = reading.listed(answer.upper()) if answer.isascii() else []
    first, *_, last = entry["metadata"]["ladder"]
    if ladder[:1] != [first] or ladder[-1:] != [last] or not {*ladder} <= {*entry["metadata"]["words"]}:
        return 0.0
    once = len(ladder) == len({*ladder})
    return float(once and all(len(_differ(*step)) == 1 for step in pairwise(ladder)))


def _first_steps(entry: Entry) -> list[str]:
    first, words = entry["metadata"]["ladder"][0], entry["metadata"]["words"]
    return [word for word in words if len(_differ(first, word)) == 1]


def _sound(entry: Entry) -> bool:
    """Whether at least four listed words can be the first step, so that guessing it seldom helps."""
    return len(_first_steps(entry)) >= 4


def _work(entry: Entry) -> str:
    steps = []
    for one, other in pairwise(entry["metadata"]["ladder"]):
        [(old, new)] = _differ(one, other)
        steps.append(f"{one}, {old} to {new}: {other}.")
    return " ".join(steps)


def _content(entry: Entry) -> Content:
    """The two ends: a ladder can be climbed down as well."""
    first, *_, last = entry["metadata"]["ladder"]
    return contents.words((first, last))


def _any_step(entry: Entry) -> str:
    first, *_, last = entry["metadata"]["ladder"]
    return f"{first},{_first_steps(entry)[0]},{last}"


FAMILY = Family(
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
    opened=_opened,
    content=_content,
    shortcuts={"any first step": _any_step},
    score=_score,
    sound=_sound,
    work=_work,
)
