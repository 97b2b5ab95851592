"""The output of a small Brainfuck program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import Any

from app.sapo import library
from app.sapo.families import scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind

_PRINTED = re.compile(r'print\("(.*)"\);')
_NUMBER = re.compile(r"int (target|x|y) = ([0-9]+);")


class _Programs:
    """The library's items without running their programs: 2 ms each for 15, and 100 for the slowest.

    What a program prints follows from the source that it is compiled from."""

    def __init__(self, difficulty: int) -> None:
        self.seed = 0
        self._difficulty = difficulty
        self._library = library.gym().create_dataset("bf", seed=0, size=1, difficulty=difficulty)

    def __getitem__(self, index: int) -> Entry:
        rng = Random(self.seed + index)
        source = self._library.generate_bfit_code(self._difficulty, rng)
        program = self._library.compile_bfit_code_to_bf(source)
        return {
            "question": rng.choice(self._library._prompt_templates).format(bf_program=program),
            "answer": printed(source),
            "metadata": {
                "source_dataset": "bf",
                "source_index": index,
                "bfit_code": source,
                "bf_program": program,
                "difficulty": {"difficulty": self._difficulty},
            },
        }


def printed(source: str) -> str:
    """A word; or a sum that grows by x and y until it is no less than a target.

    >>> printed('print("shoal");'), printed("int target = 43; int x = 2; int y = 3;")
    ('shoal', '45')
    """
    if word := _PRINTED.search(source):
        return word[1]
    numbers = {name: int(value) for name, value in _NUMBER.findall(source)}
    step = numbers["x"] + numbers["y"]
    return str(-(-numbers["target"] // step) * step)


def _opened(settings: Mapping[str, Any]) -> _Programs:
    return _Programs(settings["difficulty"])


def _source(entry: Entry) -> str:
    """What the program was compiled from: the same word is printed by several programs."""
    return str(entry["metadata"]["bfit_code"])


def _content(entry: Entry) -> Content:
    """What the program was compiled from: the same word is printed by several programs."""
    return str(entry["metadata"]["bfit_code"])


FAMILY = Family(
    name="bf",
    title="Tiny programs",
    kind=FamilyKind.LOGIC,
    levels=(
        dict(difficulty=1),
        dict(difficulty=2),
    ),
    opened=_opened,
    content=_content,
    score=scores.exact,
    paper=True,
)
