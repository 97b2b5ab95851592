"""The skill lesson: passes over the owner's rows, a tenth of which only tell when to stop.

Cross-entropy on the answers alone, every answer token of a minibatch weighing the same, at a learning rate that
falls linearly over the planned passes to a fifth, and stays there. Of labels, only the upper half of the layers
learns: as much is right then, in half the time (LOG.md). After the planned passes the lesson goes on while the
loss on the rows aside falls, at the latest to MAX_EXTENT times as many. During them that loss decides
nothing: it rises with the certainty of the wrong answers, while more become right. Held-out rows decide
nothing. When rows are added or corrected, the lesson goes on over all rows, with those more often
(`going_on`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import TypeVar

import msgspec

from app.learning.first_lesson import LEARNING_RATE, PER_STEP, imitation_batch
from app.sapo.seeds import hashed_seed
from engines.contract import Batch, TokenSequence

T = TypeVar("T")
ASIDE_SHARE, MOST_ASIDE = 10, 48
"""One training row in this many is aside, and the most rows that are."""
ROWS_PER_PART = 256
"""Maximum rows taught between two safe points."""
MIN_PASSES, MAX_PASSES, WANTED_STEPS = 3, 10, 90
"""Planned passes: enough for WANTED_STEPS optimiser steps, between the other two."""
PASSES_OVER_CHANGED, COPIES_OF_CHANGED = 2, 8
"""Planned passes over a table whose rows changed, and how often each changed row is taught beside one pass; all
copies together make up a quarter of a part at most."""
MAX_EXTENT = 3
"""How much longer than planned the lesson may be."""
MAX_MEASUREMENTS_WITHOUT_GAIN = 2
"""Measurements that bring nothing, after which rounds end."""
LEAST_RATE = 0.2
"""Share of the learning rate that is left after the planned passes."""


class LessonProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a lesson is: rows taught, all passes together; the lowest loss on the rows aside (nats per
    answer) from the last planned part on, and the measurements since."""

    taught: int = 0
    lowest: float | None = None
    since: int = 0

    def after(self, taught: int, loss: float, rows: int) -> LessonProgress:
        """Returns the progress after another part, with the loss then, if `rows` rows are taught in a pass.

        >>> planned = LessonProgress().after(640, 0.2, 160).after(160, 0.3, 160)
        >>> planned, planned.over(160), planned.after(160, 0.4, 160).over(160)
        (LessonProgress(taught=800, lowest=0.3, since=0), False, True)
        """
        done = self.taught + taught
        if self.lowest is None or loss < self.lowest or done <= rows * planned_passes(rows):
            return LessonProgress(taught=done, lowest=loss)
        return LessonProgress(taught=done, lowest=self.lowest, since=self.since + 1)

    def over(self, rows: int) -> bool:
        """Whether the lesson is over, after a pass without a lower loss."""
        return self.since >= part_count(rows) or self.taught >= MAX_EXTENT * rows * planned_passes(rows)


class Practice(msgspec.Struct, frozen=True, kw_only=True):
    """What the rounds after the lesson bring on the rows aside: the best share right, the loss with it (nats
    per answer), and the measurements since. `done`: they bring nothing more."""

    right: float | None = None
    loss: float = 0.0
    since: int = 0
    done: bool = False

    def after(self, right: float, loss: float) -> Practice:
        """Returns the practice after another measurement. With all rows aside right, rounds can bring nothing.

        >>> first = Practice().after(0.9, 0.5)
        >>> first.after(0.9, 0.4).since, first.after(0.8, 0.1).since, first.after(0.8, 0.1).after(0.9, 0.5).done
        (0, 1, True)
        >>> Practice().after(1.0, 0.1).done
        True
        """
        if self.right is None or (right, -loss) > (self.right, -self.loss):
            return Practice(right=right, loss=loss, done=right == 1)
        return msgspec.structs.replace(
            self, since=self.since + 1, done=self.since + 1 >= MAX_MEASUREMENTS_WITHOUT_GAIN
        )


def going_on(before: LessonProgress, over: bool, rows: int) -> LessonProgress:
    """Returns the progress of a lesson whose rows changed, to `rows` taught ones. Of one that was `over`, the
    last PASSES_OVER_CHANGED passes are left, and what may come after them; one that was not goes on where it
    was.

    >>> begun = LessonProgress(taught=120, lowest=0.1, since=1)
    >>> going_on(begun, True, 40).taught, going_on(begun, False, 40).taught, going_on(begun, True, 40).over(40)
    (320, 120, False)
    """
    planned = rows * (planned_passes(rows) - PASSES_OVER_CHANGED)
    return LessonProgress(taught=planned if over else min(before.taught, planned))


def repeated(amended: Sequence[T], part: int) -> list[T]:
    """Returns the changed rows, the latest first, to be taught beside a part of `part` rows.

    >>> len(repeated(["b", "a"], 80)), repeated(["c", "b", "a"], 20)
    (16, ['c', 'b', 'a', 'c', 'b'])
    """
    most = max(1, part // 4)
    return (list(amended) * COPIES_OF_CHANGED)[:most]


def planned_passes(rows: int) -> int:
    """Returns the number of passes that are planned over a table with `rows` taught rows.

    >>> [planned_passes(rows) for rows in (8, 100, 200, 4000)]
    [10, 7, 4, 3]
    """
    return min(MAX_PASSES, max(MIN_PASSES, -(-WANTED_STEPS // max(1, -(-rows // PER_STEP)))))


def split_rows(rows: int, name: str) -> tuple[list[int], list[int]]:
    """Returns the places of the rows that are taught, and of those aside: about a tenth, at least one.

    >>> taught, aside = split_rows(40, "mails")
    >>> len(taught), len(aside), sorted(taught + aside) == list(range(40))
    (36, 4, True)
    """
    ranked = sorted(range(rows), key=lambda row: hashed_seed("aside", name, row))
    aside = sorted(ranked[: min(MOST_ASIDE, max(1, rows // ASIDE_SHARE))])
    return sorted(set(range(rows)) - set(aside)), aside


def part_count(rows: int) -> int:
    """Returns the number of parts, each a round of its own, that one pass over `rows` rows has."""
    return -(-rows // ROWS_PER_PART)


def next_part(rows: int, taught: int, name: str) -> list[int]:
    """Returns the places of the rows that come next after `taught` ones: at most ROWS_PER_PART, all of one
    pass, which is cut into equal parts; each pass has an order of its own.

    >>> [len(next_part(300, taught, "mails")) for taught in (0, 150, 300)], len(next_part(256, 0, "mails"))
    ([150, 150, 150], 256)
    """
    turn, done = divmod(taught, rows)
    size = -(-rows // part_count(rows))
    return Random(hashed_seed("pass", name, turn)).sample(range(rows), rows)[done : done + size]


def part_batches(
    sequences_S: Sequence[TokenSequence], rows: int, taught: int, upper: bool = False
) -> list[Batch]:
    """Returns the optimiser steps on one part of a lesson. `sequences_S`: its rows as tokens; `rows`: the
    number of rows in a pass; `taught`: the rows taught before this part; `upper`: as in the batches.

    >>> one = TokenSequence(prompt_T=[1], completion_T=[2, 0])
    >>> [round(batch.learning_rate, 6) for batch in part_batches([one] * 16, 16, 0)]
    [0.0005, 0.000475]
    """
    planned = rows * planned_passes(rows)
    return [
        imitation_batch(
            sequences_S[first : first + PER_STEP],
            LEARNING_RATE * max(LEAST_RATE, 1 - (taught + first) / planned),
            upper,
        )
        for first in range(0, len(sequences_S), PER_STEP)
    ]


def mean_loss(logprobs_ST: Sequence[Sequence[float]]) -> float:
    """Returns the mean negative log-probability of whole answers (nats); 0 without any, which nothing can
    lower."""
    return -math.fsum(map(math.fsum, logprobs_ST)) / len(logprobs_ST) if logprobs_ST else 0.0
