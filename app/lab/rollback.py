"""`+rollback`: a node whose answers get worse goes back to the average of what it was.

Each node keeps a running mean of its adapter. What it solves of its own fresh questions tells when it falls, by
the rule of the adaptive recipe's brake (`app.sapo.adaptive`): then the mean takes the adapter's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.lab.answers import Answered
from app.lab.twist import Twist
from app.sapo import adaptive
from app.sapo.groups import informative
from app.sapo.recipes import TrainGroup, Weighed

if TYPE_CHECKING:
    from app.lab.experiment import Experiment

DECAY = 0.95
"""Of the running mean, per round."""


class Rollback(Twist):
    def __init__(self, experiment: Experiment, value: str) -> None:
        self._swarm, self._nodes = experiment.swarm, range(experiment.plan.nodes)
        self._mean = [self._swarm.values(node) for node in self._nodes]
        self._seen = [adaptive.Mixing(budget=1) for _ in self._nodes]
        self._fell: set[int] = set()

    def learning(
        self,
        node: int,
        number: int,
        weighed: Weighed,
        own: Sequence[tuple[Answered, TrainGroup]],
        peer: Sequence[tuple[Answered, TrainGroup]],
    ) -> Weighed:
        rewards = [reward for answered, _ in own for reward in answered.dealt_G]
        seen = adaptive.Round(
            asked=len(own),
            informative=sum(informative(answered.dealt_G) for answered, _ in own),
            answered=len(rewards),
            solved=sum(rewards),
        )
        braking = self._seen[node].braking
        self._seen[node] = adaptive.observe(self._seen[node], seen)
        if self._seen[node].braking and not braking:
            self._fell.add(node)
        return weighed

    def after(self, number: int) -> None:
        for node in self._nodes:
            if node in self._fell:
                self._swarm.put(node, self._mean[node])
            self._mean[node] = DECAY * self._mean[node] + (1.0 - DECAY) * self._swarm.values(node)

    def measures(self, number: int) -> dict[str, float]:
        """How many nodes went back in this round."""
        fell, self._fell = len(self._fell), set()
        return {"rolled_back": float(fell)}
