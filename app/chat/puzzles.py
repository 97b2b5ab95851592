"""Fresh puzzles, and the verdict on an answer.

The question is our own, so it is made here; answers are foreign text, so only the sandbox's child ever reads
them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping

import msgspec

from app.sapo import questions
from app.sapo.families import FAMILIES
from app.sapo.groups import SOLVED
from app.sapo.questions import Question, QuestionError
from app.sapo.scoring.sandbox import Sandbox
from app.sapo.seeds import TRAINING_SEEDS

_ALOUD = re.compile(r"\s*Describe how you derived the rule and your overall reasoning process[^.]*\.")
ANSWERED_IN_ROWS = frozenset({"binary_matrix", "rotate_matrix", "manipulate_matrix", "mini_sudoku", "n_queens"})
"""Families whose answer is a grid: one line a row."""
_TRIES = 48
"""Draws tried for a held-out puzzle; a level holds out at least one content in eight."""
_DEALT = 3
"""Draws for each puzzle wanted: some levels hold out hardly any question."""


class Puzzle(msgspec.Struct, frozen=True, kw_only=True):
    """`unseen`: whether it is held out, so that no model can have learned it by heart."""

    question: Question
    unseen: bool

    @property
    def text(self) -> str:
        return self.question.text

    @property
    def for_people(self) -> str:
        """The text without the request to think aloud, which is for models."""
        return _ALOUD.sub("", self.text)

    @property
    def family(self) -> str:
        return self.question.coordinates.family

    @property
    def level(self) -> int:
        return self.question.coordinates.level

    @property
    def title(self) -> str:
        return FAMILIES[self.family].title

    @property
    def levels(self) -> int:
        return len(FAMILIES[self.family].levels)

    @property
    def solution(self) -> str:
        """A right answer."""
        return FAMILIES[self.family].solution(self.question.entry)


def draw(
    family: str | None,
    level: int | None,
    usual: Mapping[str, int],
    rng: random.Random | None = None,
    unseen: bool = True,
) -> Puzzle:
    """A puzzle of this family and level; if none is named, one of the `usual` families at its usual level.
    `unseen`: a held-out one; otherwise one for practice. Raises QuestionError for a family or level that does
    not exist."""
    rng = rng or random.SystemRandom()
    name = family or rng.choice(sorted(usual or FAMILIES))
    if name not in FAMILIES:
        raise QuestionError(
            f"There is no family called {name[:64]!r}: choose one of {', '.join(sorted(FAMILIES))}."
        )
    levels = len(FAMILIES[name].levels)
    at = usual.get(name, 0) if level is None else level
    if not 0 <= at < levels:
        raise QuestionError(f"{name} has levels 1 to {levels}, not {at + 1}: choose one of those.")
    for _ in range(_TRIES):
        made = questions.draw(name, at, rng.choice(TRAINING_SEEDS))
        if made.held_out is unseen:
            break
    return Puzzle(question=made, unseen=made.held_out)


def several(levels: Mapping[str, int], count: int, rng: random.Random) -> list[Puzzle]:
    """This many different held-out puzzles, spread over the families in a random order. Fewer if the families
    have no more."""
    families, found = sorted(levels), dict[str, Puzzle]()
    rng.shuffle(families)
    for turn in range(_DEALT * count):
        family = families[turn % len(families)]
        puzzle = draw(family, levels[family], levels, rng)
        if puzzle.unseen:
            found.setdefault(puzzle.text, puzzle)
        if len(found) == count:
            break
    return list(found.values())


def looks_like_one(text: str, families: Iterable[str]) -> bool:
    """Whether a person's text may be a puzzle: it has a number in it, or begins as puzzles do.

    >>> looks_like_one("What is 4 + 3?", ()), looks_like_one("Hello, how are you?", ("gcd", "spell_backward"))
    (True, False)
    >>> looks_like_one("spell this word backward: sun", ("gcd", "spell_backward"))
    True
    """
    if any(char.isdigit() for char in text):
        return True
    begin = _beginning(text)
    return any(begin == _beginning(draw(name, 0, {}, random.Random(0)).text) for name in families)


def _beginning(text: str) -> list[str]:
    return text.casefold().split()[:3]


class Verdicts:
    """Judges answers in a sandbox that is opened for the first one."""

    def __init__(self) -> None:
        self._sandbox: Sandbox | None = None

    def solved(self, puzzle: Puzzle, answer: str | None) -> bool:
        """Whether the answer alone, without the words around it, is right. Raises SandboxError."""
        if self._sandbox is None:
            self._sandbox = Sandbox()
        return self._sandbox.score(puzzle.question.coordinates, [answer])[0] >= SOLVED

    def close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None
