"""The answers of a skill's best checkpoint to the held-out questions, in measured/best.json of its folder: how
sure it was of each says what its certainty is worth."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.common import files

FOLDER, BEST = "measured", "best.json"


class AnsweredQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """One held-out question and the model's answer. Questions with equal `content` are the same question."""

    question: str
    answer: str
    solved: bool
    content: int
    sure: float | None = None
    """The probability that a skill gave to its answer, in [0, 1]."""


class MeasuredAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of one measurement, in the order of its questions. `counted`: how many of them counting
    letters alone gets right (app.skills.baseline); None if unknown."""

    round: int
    answers: tuple[AnsweredQuestion, ...]
    counted: int | None = None


def keep_best(folder: Path, made: MeasuredAnswers) -> None:
    """Saves a measurement as that of the best checkpoint. Raises OSError."""
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    files.write_json(folder / FOLDER / BEST, made)


def read_best(folder: Path) -> MeasuredAnswers | None:
    """Returns the measurement of the best checkpoint; None before there is one."""
    return files.read_json(folder / FOLDER / BEST, MeasuredAnswers)
