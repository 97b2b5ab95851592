"""A question is identified by its coordinates. Text and true answer are regenerated from them, never
received.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Context, localcontext
from functools import cache
from threading import Lock
from typing import Any, Protocol

import msgspec

from app.sapo import library
from app.sapo.families import FAMILIES, LEVELS

QUESTIONS_VERSION = f"{library.LIBRARY_VERSION}/{LEVELS}"
"""Version of the questions: the library's, and that of our ladder of levels."""

MAX_SEED = 2**53 - 1  # the largest integer that JSON readers keep exactly
MAX_INDEX = 2**20 - 1  # bounds a peer's request

INDEX_STRIDE = 7919
"""Step of the index in `draw`. Not 1, because item i of seed s is item 0 of seed s + i, and that seed may
belong to another node."""

_ONE_AT_A_TIME = Lock()


class QuestionError(ValueError):
    """Coordinates that identify no question: unknown family, level or version, or numbers out of range."""


class UnsoundQuestion(QuestionError):
    """The item at these coordinates is not a fair question: its true answer is false or ambiguous, or anything
    is right."""


class UnmadeQuestion(QuestionError):
    """The question at these coordinates took too long to generate, or crashed the process that generated it."""


class Coordinates(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """The address of a question. `version` pins the generator: equal coordinates give equal questions on every
    computer."""

    family: str
    level: int
    seed: int
    index: int
    version: str = QUESTIONS_VERSION


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A regenerated question: a model sees `text`; `entry` (true answer and metadata) never leaves this
    node.
    """

    coordinates: Coordinates
    text: str
    entry: Mapping[str, Any]

    @property
    def content(self) -> int:
        """Number that identifies what is asked, independent of the wording (`Family.content`)."""
        return FAMILIES[self.coordinates.family].content_hash(self.entry)

    @property
    def held_out(self) -> bool:
        """Whether the question belongs to the probes, and so is never trained on by any node."""
        return FAMILIES[self.coordinates.family].holds_out(self.content)


class QuestionPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A question without its true answer: everything needed to ask it. `worked`: an answer with its work, and
    `solution`: one without, where a node asked for them. Questions with equal `content` are one question in
    different wordings."""

    coordinates: Coordinates
    text: str
    held_out: bool
    content: int = 0
    worked: str = ""
    solution: str = ""


class QuestionMaker(Protocol):
    """Generates many questions: `make` does it in this process, `Sandbox.questions` in a child process."""

    def __call__(
        self, places: Sequence[Coordinates], onward: bool = False
    ) -> list[QuestionPrompt | QuestionError]:
        """Returns the questions at these coordinates in order, or for each the error. `onward`: returns the
        first sound question of each seed instead, as `draw` does."""
        ...


def generate(coordinates: Coordinates) -> Question:
    """Regenerates a question. The same coordinates give the same question in every process.

    The library seeds item `index` with `seed + index`: callers keep their seeds at least MAX_INDEX apart or use
    index 0. Raises QuestionError, and UnsoundQuestion if the library's item is not a fair question.
    """
    family = FAMILIES.get(coordinates.family)
    if family is None:
        known = ", ".join(sorted(FAMILIES))
        raise QuestionError(f"There is no family called {coordinates.family!r}. Known families: {known}.")
    if not 0 <= coordinates.level < len(family.levels):
        raise QuestionError(f"{family.name} has levels 0 to {len(family.levels) - 1}, not {coordinates.level}.")
    if coordinates.version != QUESTIONS_VERSION:
        raise QuestionError(
            f"This question is of version {coordinates.version}; this node speaks {QUESTIONS_VERSION}."
        )
    if not (0 <= coordinates.seed <= MAX_SEED and 0 <= coordinates.index <= MAX_INDEX):
        raise QuestionError("A question's seed or index is out of range.")
    # One at a time: data sets are shared, and so is the standard output that is silenced. The library sets the
    # precision of decimals for the whole thread, so it gets a context of its own.
    with _ONE_AT_A_TIME, library.silence(), localcontext(Context()):
        dataset = _dataset(family.name, coordinates.level)
        # A data set reads its word lists when it is made (33 ms for spell_backward), but draws item i from
        # seed + i alone; so one is kept for each level and given the seed asked for.
        dataset.seed = coordinates.seed
        try:
            entry = dataset[coordinates.index]
            asked = family.accepts(coordinates.level, entry)
        except (ArithmeticError, LookupError, RuntimeError, ValueError):
            # For example, a division by zero inside the library, or a maze without a passage.
            asked = False
    if not asked:
        raise UnsoundQuestion(f"{family.name} has no question with one true answer at these coordinates.")
    return Question(coordinates=coordinates, text=family.wording(entry).strip(), entry=entry)


def draw(family: str, level: int, seed: int) -> Question:
    """Returns the first sound question of a seed, trying index 0, INDEX_STRIDE, 2 INDEX_STRIDE and so on.
    Raises QuestionError."""
    for index in range(0, MAX_INDEX, INDEX_STRIDE):
        try:
            return generate(Coordinates(family=family, level=level, seed=seed, index=index))
        except UnsoundQuestion:
            continue
    raise QuestionError(f"{family} at level {level} has no question at seed {seed}: take another seed.")


def make(places: Sequence[Coordinates], onward: bool = False) -> list[QuestionPrompt | QuestionError]:
    """Generates questions in this process, which then holds the library (60 MB); see QuestionMaker."""
    return [_made(place, onward) for place in places]


def _made(place: Coordinates, onward: bool) -> QuestionPrompt | QuestionError:
    try:
        question = draw(place.family, place.level, place.seed) if onward else generate(place)
    except QuestionError as refusal:
        return refusal
    return QuestionPrompt(
        coordinates=question.coordinates,
        text=question.text,
        held_out=question.held_out,
        content=question.content,
    )


@cache
def _dataset(family: str, level: int) -> Any:
    config, opened = FAMILIES[family].levels[level], FAMILIES[family].opened
    if opened is not None:
        return opened(config)
    return library.gym().create_dataset(family, size=MAX_INDEX + 1, seed=0, **config)
