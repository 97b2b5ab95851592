"""A question is its coordinates. Text and truth are regenerated from them, never received."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from app.sapo import library
from app.sapo.families import FAMILIES, LADDER

VERSION = f"{library.VERSION}/{LADDER}"
"""Version of a question's meaning: the library's and that of our ladder of levels."""

MAX_SEED = 2**53 - 1
MAX_INDEX = 2**20 - 1


class QuestionError(ValueError):
    """Coordinates that name no question here: unknown family, level or version, or numbers out of range."""


class Coordinates(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Where a question lies. `version` fixes the generator, so equal coordinates give equal questions anywhere."""

    family: str
    level: int
    seed: int
    index: int
    version: str = VERSION


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A regenerated question: `text` may be shown to a model, `entry` (truth and metadata) never leaves this node."""

    coordinates: Coordinates
    text: str
    entry: Mapping[str, Any]


def generate(coordinates: Coordinates) -> Question:
    """Regenerates a question. The same coordinates give the same question in every process.

    The library seeds item `index` with `seed + index`: callers keep their seeds at least MAX_INDEX apart or use
    index 0. Raises QuestionError.
    """
    family = FAMILIES.get(coordinates.family)
    if family is None:
        known = ", ".join(sorted(FAMILIES))
        raise QuestionError(f"There is no family called {coordinates.family!r}. Known families: {known}.")
    if not 0 <= coordinates.level < len(family.levels):
        raise QuestionError(
            f"{family.name} has levels 0 to {len(family.levels) - 1}, not {coordinates.level}."
        )
    if coordinates.version != VERSION:
        raise QuestionError(f"This question is of version {coordinates.version}; this node speaks {VERSION}.")
    if not (0 <= coordinates.seed <= MAX_SEED and 0 <= coordinates.index <= MAX_INDEX):
        raise QuestionError("A question's seed or index is out of range.")
    with library.silence():
        dataset = _dataset(family.name, coordinates.level)
        # A data set reads its word lists when it is made (33 ms for spell_backward), but draws item i from
        # seed + i alone; so one is kept for each level and given the seed asked for.
        dataset.seed = coordinates.seed
        entry = dataset[coordinates.index]
    return Question(coordinates=coordinates, text=str(entry["question"]).strip(), entry=entry)


@cache
def _dataset(family: str, level: int) -> Any:
    config = FAMILIES[family].levels[level]
    return library.gym().create_dataset(family, size=MAX_INDEX + 1, seed=0, **config)
