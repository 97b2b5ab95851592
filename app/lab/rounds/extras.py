"""Extras: what an arm adds to a round beyond its I/J and recipe, `+name=value` in the arm.

The experiment asks every extra at fixed points of a round (`app.lab.rounds.extra.RoundExtra`), in the order of
their names.
"""

from __future__ import annotations

from collections.abc import Callable

from app.lab.rounds.extra import ExtendedRun, RoundExtra
from app.lab.rounds.hostile import Hostile
from app.sapo import seeds

PACE, STAY = 4, 10
"""What `+paces` and `+churn` mean without a value."""


def paced(nodes: int, pace: int, number: int) -> set[int]:
    """Who acts in a round when the second half acts in every `pace`-th only, each at its own time.

    >>> [paced(4, 2, number) for number in (1, 2)]
    [{0, 1, 3}, {0, 1, 2}]
    """
    fast = nodes - nodes // 2
    return {node for node in range(nodes) if node < fast or (number + node) % pace == 0}


def staying(nodes: int, stay: int, number: int) -> set[int]:
    """Who is there when every `stay` rounds half of the nodes, drawn again, go away. 0 always stays."""
    spell = (number - 1) // stay
    ranked = sorted(range(1, nodes), key=lambda node: seeds.hashed("churn", spell, node))
    return {0, *ranked[: max(1, nodes // 2 - 1)]}


class Paces(RoundExtra):
    """`+paces=k`: the second half of the nodes acts in every k-th round only, each at its own time."""

    def __init__(self, experiment: ExtendedRun, value: str) -> None:
        self._nodes = experiment.plan.nodes
        self._pace = int(value or PACE)

    def active(self, number: int) -> set[int]:
        return paced(self._nodes, self._pace, number)


class Churn(RoundExtra):
    """`+churn=r`: every r rounds half of the nodes, drawn again, go away for r rounds; node 0 always stays."""

    def __init__(self, experiment: ExtendedRun, value: str) -> None:
        self._nodes = experiment.plan.nodes
        self._stay = int(value or STAY)

    def active(self, number: int) -> set[int]:
        return staying(self._nodes, self._stay, number)


ROUND_EXTRAS: dict[str, Callable[[ExtendedRun, str], RoundExtra]] = {
    "churn": Churn,
    "foes": Hostile,
    "paces": Paces,
}
"""By the name of the extra, as in `app.lab.arms.arms.EXTRAS`. Those of the recipe are none."""


def open_extras(experiment: ExtendedRun) -> list[RoundExtra]:
    """Those that the experiment's arm names."""
    return [
        ROUND_EXTRAS[name](experiment, value) for name, value in experiment.arm.extras if name in ROUND_EXTRAS
    ]
