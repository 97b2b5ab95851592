"""The extras that an arm may add to a round: the points of a round at which an extra is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.lab.answers import Answered
from app.lab.arms.arms import Arm
from app.lab.plan import StudyPlan
from app.lab.swarm import LabSwarm
from app.learning.lesson import Weighed
from app.sapo.asking import Way
from app.sapo.groups import Group, ScoredGroup


class ExtendedRun(Protocol):
    """What an extra sees of the run it is part of (`app.lab.rounds.experiment.Experiment`)."""

    plan: StudyPlan
    arm: Arm
    seed: int
    swarm: LabSwarm
    way: Way

    def score(self, group: Group, /) -> ScoredGroup: ...


class RoundExtra:
    """Each method leaves things as they are, so that an extra writes down only what it changes. `number` is the
    round, from 1."""

    def active(self, number: int) -> set[int] | None:
        """The nodes that act in this round, None for all. The others neither answer, publish nor learn."""
        return None

    def published(self, number: int, fresh: list[Answered]) -> list[Answered]:
        """What really enters the pool of everything that nodes kept."""
        return fresh

    def offered(self, node: int, number: int, pool: list[Answered]) -> list[Answered]:
        """What a node may choose from of everything that others published."""
        return pool

    def learned(self, weighed: Weighed, peer_P: Sequence[Answered]) -> None:
        """A node has weighed and learned from these groups of peers."""

    def after(self, number: int) -> None:
        """Whatever happens when all nodes have made their step, before the probe."""

    def measures(self, number: int) -> dict[str, float]:
        """What the round's record keeps beside its own figures. The same names in every round."""
        return {}
