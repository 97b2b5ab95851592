"""`+archive`: every node is alone with what a swarm of other nodes left behind the day before.

Yesterday's swarm is as large, plays the same arm without `+archive` for as many rounds, and ends before today's
begins. What its nodes published is then drawn from as the app draws from a relay's archive when nobody else is
here: whatever the round it is of, by turns from each of yesterday's nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from app.lab.answers import Answered
from app.lab.arms.arms import Arm
from app.lab.plan import StudyPlan
from app.lab.rounds.experiment import Experiment, Score
from app.lab.rounds.extra import RoundExtra
from app.lab.swarm import LabSwarm

NAME = "archive"
_EARLIER = 1_000_000
"""Yesterday's swarm has this much higher a seed."""
_WANTED = 4
"""So many times J groups are asked for: not all of them have something to teach."""


class _Keeper(RoundExtra):
    """Keeps everything that a swarm publishes."""

    def __init__(self) -> None:
        self.kept: list[Answered] = []

    def published(self, number: int, fresh: list[Answered]) -> list[Answered]:
        self.kept += fresh
        return fresh


class Archived(RoundExtra):
    """What a swarm `left`, in place of what others publish now."""

    def __init__(self, experiment: Experiment, left: list[Answered]) -> None:
        self._experiment = experiment
        self._left_N: dict[int, list[Answered]] = {}
        for answered in left:
            self._left_N.setdefault(answered.node, []).append(answered)

    def offered(self, node: int, number: int, pool: list[Answered]) -> list[Answered]:
        rng = self._experiment.rng(node, number, NAME)
        taken, wanted = self._experiment.taken[node], _WANTED * self._experiment.arm.peer
        each = -(-wanted // len(self._left_N))
        offered = [
            one
            for left in self._left_N.values()
            for one in rng.sample(left, min(each, len(left)))
            if one.scored.group.coordinates not in taken
        ]
        return [replace(one, round=number) for one in offered]


def open_experiment(
    plan: StudyPlan, arm: Arm, seed: int, open_swarm: Callable[[StudyPlan, int], LabSwarm], score: Score
) -> Experiment:
    """The run of an arm and a seed, after yesterday's where the arm has one. Raises ArmError."""
    lived = tuple(extra for extra in arm.extras if extra[0] != NAME)
    if lived == arm.extras:
        return Experiment(plan, arm, seed, open_swarm(plan, seed), score)
    before = seed + _EARLIER
    keeper = _Keeper()
    yesterday = Experiment(
        plan, msgspec.structs.replace(arm, extras=lived), before, open_swarm(plan, before), score
    )
    yesterday.extras.append(keeper)
    for _ in yesterday.rounds(measured=False):
        pass
    today = Experiment(plan, arm, seed, open_swarm(plan, seed), score)
    today.extras.append(Archived(today, keeper.kept))
    return today
