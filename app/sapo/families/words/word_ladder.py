"""From one word to another, letter by letter, over words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

import msgspec

from app.sapo import library, reading
from app.sapo.families import contents
from app.sapo.families.family import Content, Entry, Family, FamilyKind


class _Ladders:
    """The library's words and its question, with ladders drawn from seed + item alone and of one length.

    The library's own data set walks through sets of text, in another order in each process, takes ladders as
    long as they come, and has no more than 20,000 items."""

    def __init__(self, letters: int, steps: int) -> None:
        self.seed = 0
        self._steps = steps
        settings = dict(min_word_length=letters, max_word_length=letters)
        words = library.gym().create_dataset("word_ladder", seed=0, size=1, **settings)
        self._near = {word: sorted(near) for word, near in words.word_graphs[letters].items()}
        self._words = sorted(self._near)

    def __getitem__(self, index: int) -> Entry:
        rng = Random(self.seed + index)
        start = rng.choice(self._words)
        before, ends = self._reached(start)
        ladder = [rng.choice(ends)]
        while ladder[-1] != start:
            ladder.append(before[ladder[-1]])
        ladder.reverse()
        question = _ASKED.format(start=start, end=ladder[-1])
        return {"question": question, "answer": ",".join(ladder), "metadata": {"ladder": ladder}}

    def _reached(self, start: str) -> tuple[dict[str, str], list[str]]:
        """Every word within reach with the one before it on a shortest way, and those that take all the steps,
        of which there may be none."""
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


_ASKED = """Transform the word '{start}' into '{end}' by changing one letter at a time.
Each step must be an English word of the same length, and no word may come twice.
Provide your answer as a comma-separated sequence of uppercase letters without spaces."""


def _opened(settings: Mapping[str, Any]) -> _Ladders:
    return _Ladders(**settings)


@cache
def _known() -> frozenset[str]:
    """All words of three to five letters in the library's lists."""
    data = library.gym().data
    with data.get_data_file_path("anagrams.jsonl").open(encoding="utf-8") as lines:
        anagrams = [word.upper() for line in lines for word in msgspec.json.decode(line)["words"]]
    listed = data.read_data_file("words.csv").upper().replace(",", " ").split()
    return frozenset(
        word
        for word in (*listed, *data.read_data_file("words3to10.txt").upper().split(), *anagrams)
        if 3 <= len(word) <= 5 and word.isascii() and word.isalpha()
    )


def _differ(one: str, other: str) -> list[tuple[str, str]]:
    return [pair for pair in zip(one, other, strict=False) if pair[0] != pair[1]]


def _climbs(ladder: Sequence[str]) -> bool:
    return all(len(one) == len(other) and len(_differ(one, other)) == 1 for one, other in pairwise(ladder))


def _score(answer: str, entry: Entry) -> float:
    """1 for any ladder from the first word to the last, short or long, in any case."""
    ladder = reading.listed(answer.upper()) if answer.isascii() else []
    first, *_, last = entry["metadata"]["ladder"]
    whole = len(ladder) == len(set(ladder)) and ladder[:1] == [first] and ladder[-1:] == [last]
    return float(whole and _climbs(ladder) and _known().issuperset(ladder))


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


FAMILY = Family(
    name="word_ladder",
    title="Word ladders",
    kind=FamilyKind.WORDS,
    levels=(
        dict(letters=3, steps=2),
        dict(letters=3, steps=3),
        dict(letters=4, steps=3),
        dict(letters=4, steps=5),
        dict(letters=5, steps=5),
    ),
    opened=_opened,
    content=_content,
    score=_score,
    work=_work,
)
