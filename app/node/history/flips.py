"""Before and after: compares the answers to the held-out questions at the first and the latest measurement, and
finds the questions that flipped. Stored beside the history as MODEL/measured/MARK-first.json and
MARK-latest.json; a mark identifies a set of questions, so only answers to the same ones are compared."""

from __future__ import annotations

import csv
import io
import math
from collections import deque
from pathlib import Path

import msgspec

from app.common import files
from app.node.data.home import SKILLS

FOLDER = "measured"


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


class AnswerPair(msgspec.Struct, frozen=True, kw_only=True):
    """A question's answers before and after; `was` and `now` tell whether they were right."""

    question: str
    before: str
    after: str
    was: bool
    now: bool


class Flips(msgspec.Struct, frozen=True, kw_only=True):
    """All questions asked at both measurements. `first` and `latest` are rounds; `pairs` and `contents` are in
    the order of the questions."""

    first: int
    latest: int
    pairs: tuple[AnswerPair, ...]
    contents: tuple[int, ...]

    @property
    def gained(self) -> tuple[AnswerPair, ...]:
        """Pairs that changed from wrong to right."""
        return tuple(one for one in self.pairs if one.now and not one.was)

    @property
    def lost(self) -> tuple[AnswerPair, ...]:
        """Pairs that changed from right to wrong."""
        return tuple(one for one in self.pairs if one.was and not one.now)

    @property
    def difference(self) -> float:
        """Share solved at the latest measurement minus share solved at the first."""
        return (len(self.gained) - len(self.lost)) / max(1, len(self.pairs))

    @property
    def standard_error(self) -> float:
        """Standard error of the difference: paired, with a question that was asked several times counted as one
        cluster (as in `app.sapo.probe.score`).

        >>> made = [AnswerPair(question=str(n), before="", after="", was=n == 9, now=n < 5) for n in range(10)]
        >>> flips = Flips(first=0, latest=9, pairs=tuple(made), contents=tuple(range(10)))
        >>> len(flips.gained), len(flips.lost), round(flips.difference, 2), round(flips.standard_error, 3)
        (5, 1, 0.4, 0.21)
        """
        return math.sqrt(sum(value**2 for value in self._apart(self.difference).values())) / max(
            1, len(self.pairs)
        )

    @property
    def p_value(self) -> float:
        """p-value of the difference: McNemar's exact test, two-sided, each question counted once by the sign of
        its sum.

        >>> made = [AnswerPair(question="", before="", after="", was=False, now=True) for _ in range(6)]
        >>> [Flips(first=0, latest=9, pairs=tuple(made), contents=ids).p_value for ids in (range(6), (1,) * 6)]
        [0.03125, 1.0]
        """
        sums = [value for value in self._apart(0.0).values() if value]
        least = min(sum(value > 0 for value in sums), sum(value < 0 for value in sums))
        tail = sum(math.comb(len(sums), k) for k in range(least + 1)) / 2 ** len(sums)
        return min(1.0, 2 * tail)

    def _apart(self, mean: float) -> dict[int, float]:
        found: dict[int, float] = {}
        for content, one in zip(self.contents, self.pairs, strict=True):
            found[content] = found.get(content, 0.0) + one.now - one.was - mean
        return found

    def csv(self) -> str:
        """Returns a CSV table with one row per question. Text that a spreadsheet would run as a formula gets an
        apostrophe."""
        text = io.StringIO()
        write = csv.writer(text, lineterminator="\n").writerow
        write(["question", "before", "right before", "after", "right after"])
        for one in self.pairs:
            write([_inert(one.question), _inert(one.before), int(one.was), _inert(one.after), int(one.now)])
        return text.getvalue()


def _inert(text: str) -> str:
    """
    >>> _inert("=SUM(A1)"), _inert("7 #7")
    ("'=SUM(A1)", '7 #7')
    """
    return f"'{text}" if text[:1] in "=+-@\t\r" and text else text


def keep(folder: Path, mark: str, made: MeasuredAnswers) -> None:
    """Saves a measurement as the latest, and as the first if there is no earlier one. Raises OSError."""
    place = folder / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    before = files.read_json(place / f"{mark}-first.json", MeasuredAnswers)
    if before is None or before.round >= made.round:
        files.write_json(place / f"{mark}-first.json", made)
    files.write_json(place / f"{mark}-latest.json", made)


def keep_best(folder: Path, made: MeasuredAnswers) -> None:
    """Saves a measurement as that of the best checkpoint. Raises OSError."""
    files.write_json(folder / FOLDER / "best.json", made)


def read_best(folder: Path) -> MeasuredAnswers | None:
    """Returns the measurement of the best checkpoint; None before there is one."""
    return files.read_json(folder / FOLDER / "best.json", MeasuredAnswers)


def read(folder: Path, mark: str) -> Flips | None:
    """Returns the flips; None before the second measurement. Only questions asked at both are compared: a brief
    first measurement asks every fourth."""
    first, latest = (
        files.read_json(folder / FOLDER / f"{mark}-{which}.json", MeasuredAnswers)
        for which in ("first", "latest")
    )
    if first is None or latest is None or first.round >= latest.round:
        return None
    asked: dict[str, deque[AnsweredQuestion]] = {}
    for one in first.answers:
        asked.setdefault(one.question, deque()).append(one)
    both = [(asked[one.question].popleft(), one) for one in latest.answers if asked.get(one.question)]
    return Flips(
        first=first.round,
        latest=latest.round,
        pairs=tuple(
            AnswerPair(
                question=was.question, before=was.answer, after=now.answer, was=was.solved, now=now.solved
            )
            for was, now in both
        ),
        contents=tuple(now.content for _, now in both),
    )


def newest(home: Path, mark: str, round_: int) -> Flips | None:
    """Returns the flips of the latest measurement with these questions in any model's folder, if it was after
    `round_`."""
    files_ = [*home.glob(f"models/*/{FOLDER}/{mark}-latest.json")]
    files_ += home.glob(f"models/*/{SKILLS}/*/{FOLDER}/{mark}-latest.json")
    places = [file.parents[1] for file in files_]
    places.sort(key=lambda folder: (folder / FOLDER / f"{mark}-latest.json").stat().st_mtime)
    found = read(places[-1], mark) if places else None
    return found if found is not None and found.latest == round_ else None
