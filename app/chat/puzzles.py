"""Draws new puzzles, and scores answers to them.

The question is generated here; answers are untrusted text, so only the sandbox's child process parses them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping

import msgspec

from app.sapo import questions
from app.sapo.families import FAMILIES
from app.sapo.groups import SOLVED_SCORE
from app.sapo.questions import Question, QuestionError
from app.sapo.scoring.sandbox import Sandbox
from app.sapo.seeds import TRAINING_SEEDS

_ALOUD = re.compile(r"\s*Describe how you derived the rule and your overall reasoning process[^.]*\.")
ANSWERED_IN_ROWS = frozenset({"binary_matrix", "rotate_matrix", "manipulate_matrix", "mini_sudoku", "n_queens"})
"""Families whose answer is a grid, one row per line."""
_TRIES = 48
"""Maximum draws in search of a held-out puzzle; at least one in eight contents of a level is held out."""
_DEALT = 3
"""Maximum draws per puzzle wanted: some levels hold out very few questions."""


class Puzzle(msgspec.Struct, frozen=True, kw_only=True):
    """A generated puzzle. `unseen`: it is held out, so no model was trained on it."""

    question: Question
    unseen: bool

    @property
    def text(self) -> str:
        return self.question.text

    @property
    def text_for_people(self) -> str:
        """The text without the request to think aloud, which is meant for models."""
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
        """A correct answer."""
        return FAMILIES[self.family].solution(self.question.entry)


def draw(
    family: str | None,
    level: int | None,
    usual: Mapping[str, int],
    rng: random.Random | None = None,
    unseen: bool = True,
) -> Puzzle:
    """Draws a puzzle. Without a `family` one of the `usual` families is chosen; without a `level` the family's
    level in `usual`, or 0. `unseen`: a held-out puzzle, otherwise one for practice; if none is found in _TRIES
    draws, the last one drawn is returned. Raises QuestionError for an unknown family or level."""
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


def draw_several(levels: Mapping[str, int], count: int, rng: random.Random) -> list[Puzzle]:
    """Returns `count` different held-out puzzles, spread over the families in random order; fewer if the
    families have no more."""
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


def looks_like_puzzle(text: str, families: Iterable[str]) -> bool:
    """Guesses whether a person's text is a puzzle: it contains a digit, or begins like a puzzle of one of
    `families`.

    >>> looks_like_puzzle("What is 4 + 3?", ()), looks_like_puzzle("Hello, how are you?", ("gcd",))
    (True, False)
    >>> looks_like_puzzle("spell this word backward: sun", ("gcd", "spell_backward"))
    True
    """
    if any(char.isdigit() for char in text):
        return True
    begin = _beginning(text)
    return any(begin == _beginning(draw(name, 0, {}, random.Random(0)).text) for name in families)


def _beginning(text: str) -> list[str]:
    return text.casefold().split()[:3]


class AnswerScorer:
    """Scores answers in a sandbox process, started at the first answer."""

    def __init__(self) -> None:
        self._sandbox: Sandbox | None = None

    def solved(self, puzzle: Puzzle, answer: str | None) -> bool:
        """Returns whether the extracted answer is correct. Raises SandboxError."""
        if self._sandbox is None:
            self._sandbox = Sandbox()
        return self._sandbox.score(puzzle.question.coordinates, [answer])[0] >= SOLVED_SCORE

    def close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None
