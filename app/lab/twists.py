"""Twists: what an arm adds to a round beyond its I/J and recipe, `+name=value` in the arm.

The experiment asks every twist at fixed points of a round, in the order of their names. Each method of `Twist`
leaves things as they are, so that a twist writes down only what it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from app.lab.answers import Answered
from app.sapo import seeds
from app.sapo.recipes import TrainGroup, Weighed

if TYPE_CHECKING:
    from app.lab.experiment import Experiment


class Twist:
    """The points of a round at which something can be added. `number` is the round, from 1."""

    def active(self, number: int) -> set[int] | None:
        """The nodes that act in this round, None for all. The others neither answer, publish nor learn."""
        return None

    def published(self, number: int, fresh: list[Answered]) -> list[Answered]:
        """What really enters the pool of everything that nodes kept."""
        return fresh

    def offered(self, node: int, number: int, pool: list[Answered]) -> list[Answered]:
        """What a node may choose from of everything that others published."""
        return pool

    def learning(
        self,
        node: int,
        number: int,
        weighed: Weighed,
        own: Sequence[tuple[Answered, TrainGroup]],
        peer: Sequence[tuple[Answered, TrainGroup]],
    ) -> Weighed:
        """The weights of a node's step. Peer groups have log-probabilities where the recipe asks."""
        return weighed

    def after(self, number: int) -> None:
        """Whatever happens when all nodes have made their step, before the probe."""

    def measures(self, number: int) -> dict[str, float]:
        """What the round's record keeps beside its own figures. The same names in every round."""
        return {}


class Paces(Twist):
    """`+paces=k`: the second half of the nodes acts in every k-th round only, each at its own time."""

    def __init__(self, experiment: Experiment, value: str) -> None:
        self._nodes = experiment.plan.nodes
        self._pace = int(value or 4)

    def active(self, number: int) -> set[int]:
        fast = self._nodes - self._nodes // 2
        return {node for node in range(self._nodes) if node < fast or (number + node) % self._pace == 0}


class Churn(Twist):
    """`+churn=r`: every r rounds half of the nodes, drawn anew, go away for r rounds; node 0 always stays."""

    def __init__(self, experiment: Experiment, value: str) -> None:
        self._nodes = experiment.plan.nodes
        self._stay = int(value or 10)

    def active(self, number: int) -> set[int]:
        spell = (number - 1) // self._stay
        ranked = sorted(range(1, self._nodes), key=lambda node: seeds.hashed("churn", spell, node))
        return {0, *ranked[: max(1, self._nodes // 2 - 1)]}


TWISTS: dict[str, Callable[[Experiment, str], Twist]] = {"paces": Paces, "churn": Churn}
"""By the name of the extra, as in `app.lab.arms.EXTRAS`."""


def open_twists(experiment: Experiment) -> list[Twist]:
    """Those that the experiment's arm names."""
    return [TWISTS[name](experiment, value) for name, value in experiment.arm.extras]
