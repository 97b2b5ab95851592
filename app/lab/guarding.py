"""`+guard`: the defences of `app.sapo.defences` in an experiment, all of them or those that are named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from app.lab.answers import Answered
from app.lab.twist import Twist
from app.sapo import defences, recipes
from app.sapo.defences import Check, Habits, Record
from app.sapo.recipes import TrainGroup, Weighed

if TYPE_CHECKING:
    from app.lab.experiment import Experiment

CHECKS: tuple[Check, ...] = ("tokens", "form", "length")


class Guarded(Twist):
    """Every node has its own habits, and its own record of every peer. `tokens` needs a recipe that asks for
    peers' log-probs."""

    def __init__(self, experiment: Experiment, value: str) -> None:
        self._experiment = experiment
        self._nodes = experiment.plan.nodes
        names = value.split(".")
        self._checks = tuple(check for check in CHECKS if not value or check in names)
        self._by_record = not value or "trust" in names
        self._habits: list[Habits | None] = [None] * self._nodes
        self._records: list[dict[int, Record]] = [{} for _ in range(self._nodes)]
        self._counted = dict.fromkeys(("honest_taken", "honest_kept_out", "foe_taken", "foe_kept_out"), 0.0)

    def trust(self, node: int, peer: int) -> float:
        if not self._by_record:
            return 1.0
        return defences.trust(self._records[node].get(peer, Record()))

    def learning(
        self,
        node: int,
        number: int,
        weighed: Weighed,
        own: Sequence[tuple[Answered, TrainGroup]],
        peer: Sequence[tuple[Answered, TrainGroup]],
    ) -> Weighed:
        finished = [c for answered, _ in own for c in answered.completions_G if c.finished]
        habits = defences.observe(
            self._habits[node], [c.logprobs_T for c in finished], [c.text for c in finished]
        )
        self._habits[node] = habits
        experiment, star = self._experiment, self._experiment.own_logprob[node] or 0.0
        groups = [self._trusted(habits, *pair) for pair in peer]
        guarded = recipes.weigh(experiment.recipe, [group for _, group in own], groups, star)
        for (answered, _), (taken, kept_out) in zip(peer, guarded.right_P, strict=True):
            record = self._records[node].get(answered.node, Record())
            self._records[node][answered.node] = defences.remembered(record, taken, kept_out)
            who = "foe" if answered.node >= self._nodes else "honest"
            self._counted[f"{who}_taken"] += taken
            self._counted[f"{who}_kept_out"] += kept_out
        return guarded

    def measures(self, number: int) -> dict[str, float]:
        """Right answers of honest peers and of attackers that were taken and kept out, by all nodes."""
        counted, self._counted = self._counted, dict.fromkeys(self._counted, 0.0)
        return counted

    def _trusted(self, habits: Habits | None, answered: Answered, group: TrainGroup) -> TrainGroup:
        if habits is None or not self._checks:
            return group
        trusted_G = defences.trusted(
            self._checks, habits, answered.scored.group.completions_G, group.lengths_G, group.logprobs_GT
        )
        return msgspec.structs.replace(group, trusted_G=trusted_G)
