"""The curriculum: which families a node asks, and at which level.

A family moves up a level when more than 70 % of its answers over its last 20 rounds were right, as in
reasoning-gym's curricula (arXiv 2505.24760), or 90 % over its last four. Every function returns a new
state; states are plain data.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from random import Random

import msgspec

from app.sapo.families import FAMILIES
from app.sapo.questions import QuestionError

WINDOW_ROUNDS = 20
"""Number of rounds in a window: the latest in which the family was asked."""
CLIMB_PERCENT = 70
STEP_BACK_PERCENT = 5
REVIEW_PERCENT = 40
"""Percent of questions asked at a level below the current one, once a family has climbed."""
MIN_ANSWERS = 64
"""A full window with fewer answers than this (tiny groups) changes nothing."""
RECENT_ROUNDS, MASTERED_SHARE, MIN_WEIGHT = 4, 0.9, 0.25
"""Rounds that tell how well a family is done now; the share of right answers in them with which it climbs at
once; and a family's minimum weight, where nearly all of its groups teach nothing."""
GROUP = 8
"""Answers of the group whose chance of being mixed weighs a family."""


class FamilyTally(msgspec.Struct, frozen=True):
    """Right answers and all answers of one family in one round."""

    solved: int
    answered: int


class FamilyProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of one family. `window`: its latest rounds at this level, oldest first."""

    family: str
    level: int
    window: tuple[FamilyTally, ...] = ()
    first: int = 0
    """The level at which the family began; it never goes below it."""

    @property
    def solved_share(self) -> float | None:
        """Share of right answers in the window, None before the first."""
        answered = sum(tally.answered for tally in self.window)
        return sum(tally.solved for tally in self.window) / answered if answered else None

    @property
    def solves_enough(self) -> bool:
        """Whether it may climb once its window is full."""
        return 100 * (self.solved_share or 0.0) > CLIMB_PERCENT

    @property
    def recent_share(self) -> float | None:
        """Share of right answers in its last rounds: RECENT_ROUNDS, or as many as have MIN_ANSWERS. None
        while the window is shorter."""
        right = answered = 0
        for rounds, tally in enumerate(reversed(self.window), 1):
            right, answered = right + tally.solved, answered + tally.answered
            if rounds >= RECENT_ROUNDS and answered >= MIN_ANSWERS:
                return right / answered
        return None

    @property
    def mastered(self) -> bool:
        """Whether nearly all of its last answers were right."""
        return (self.recent_share or 0.0) >= MASTERED_SHARE

    @property
    def weight(self) -> float:
        """How many of its questions a round asks, beside a family of which nothing is known: the chance that
        a group is mixed, because others teach nothing."""
        share = self.recent_share
        if share is None:
            return 1.0
        return max(MIN_WEIGHT, 1.0 - share**GROUP - (1.0 - share) ** GROUP)


class Curriculum(msgspec.Struct, frozen=True, kw_only=True):
    """The active families, in the order they were given."""

    families: tuple[FamilyProgress, ...]

    @property
    def levels(self) -> dict[str, int]:
        return {progress.family: progress.level for progress in self.families}

    def questions(self, count: int) -> int:
        """Number of questions of a round that has `count` until families are mostly right; those that are hard
        need every group.

        >>> new = FamilyProgress(family="gcd", level=0)
        >>> hard, done = (
        ...     FamilyProgress(family="lcm", level=0, window=(FamilyTally(right, 16),) * 4) for right in (1, 16)
        ... )
        >>> [Curriculum(families=some).questions(8) for some in ((new,), (new, done), (done,), (new, hard))]
        [8, 5, 2, 8]
        """
        needed = [one.weight if (one.recent_share or 0.0) > 0.5 else 1.0 for one in self.families]
        return ceil(count * sum(needed) / len(needed))


def start(levels: Mapping[str, int]) -> Curriculum:
    """Returns a curriculum of these families at these levels. Raises QuestionError for an unknown family or
    level, or without any family."""
    if not levels:
        raise QuestionError("A curriculum needs at least one family.")
    for name, level in levels.items():
        if name not in FAMILIES:
            known = ", ".join(sorted(FAMILIES))
            raise QuestionError(f"There is no family called {name!r}. Known families: {known}.")
        if not 0 <= level < len(FAMILIES[name].levels):
            raise QuestionError(f"{name} has levels 0 to {len(FAMILIES[name].levels) - 1}, not {level}.")
    return Curriculum(
        families=tuple(FamilyProgress(family=name, level=level, first=level) for name, level in levels.items())
    )


def draw(curriculum: Curriculum, rng: Random) -> tuple[str, int]:
    """Draws one family, by its weight, and a level. Called for each question of a
    round, so with replacement as in SAPO (arXiv 2509.08721, section 4).

    The level is the family's current one or, in REVIEW_PERCENT of draws once it has climbed, a lower one.
    """
    weights = [one.weight for one in curriculum.families]
    even = len({*weights}) == 1
    progress = rng.choice(curriculum.families) if even else rng.choices(curriculum.families, weights)[0]
    if progress.level > progress.first and rng.randrange(100) < REVIEW_PERCENT:
        return progress.family, rng.randrange(progress.first, progress.level)
    return progress.family, progress.level


def after_round(curriculum: Curriculum, round: Mapping[str, FamilyTally]) -> Curriculum:
    """Returns the state after a round. `round` counts the answers at each family's current level; families
    without answers are unchanged.

    With at least MIN_ANSWERS in its window, a family climbs when it is mastered, or when the window is full and
    more than CLIMB_PERCENT are right; it steps back when the window is full and fewer than STEP_BACK_PERCENT
    are. Its window then starts empty, because results at one level say little about another.
    """
    return Curriculum(
        families=tuple(
            _after(progress, round[progress.family])
            if progress.family in round and round[progress.family].answered > 0
            else progress
            for progress in curriculum.families
        )
    )


def _after(progress: FamilyProgress, tally: FamilyTally) -> FamilyProgress:
    after = msgspec.structs.replace(progress, window=(*progress.window, tally)[-WINDOW_ROUNDS:])
    solved, answered = sum(t.solved for t in after.window), sum(t.answered for t in after.window)
    if answered < MIN_ANSWERS or not (after.mastered or len(after.window) == WINDOW_ROUNDS):
        return after
    top = len(FAMILIES[progress.family].levels) - 1
    if (after.mastered or 100 * solved > CLIMB_PERCENT * answered) and progress.level < top:
        return msgspec.structs.replace(progress, level=progress.level + 1, window=())
    if 100 * solved < STEP_BACK_PERCENT * answered and progress.level > progress.first:
        return msgspec.structs.replace(progress, level=progress.level - 1, window=())
    return after
