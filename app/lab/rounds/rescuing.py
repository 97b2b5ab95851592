"""Prefix rescue for all nodes of a round at once: `app.learning.rescue` with a swarm's own answers.

Shapes: `_N` nodes, `_P` a node's questions, `_G` completions of a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from app.lab.answers import Answered, group_of
from app.learning.lesson import Own, PeerTokens
from app.learning.rescue import TRIES, Search, begun, narrowed
from engines.contract import Completion, Messages

if TYPE_CHECKING:
    from app.lab.rounds.experiment import Experiment


@dataclass
class _Case:
    """One peer's group whose question a node tries again. `openings` are of its likeliest right answer."""

    node: int
    peer: Answered
    openings: list[str]
    search: Search
    found: Own | None = None

    def prompt(self) -> Messages:
        assert self.search.at is not None, "the search goes on"
        return [*self.peer.prompt, {"role": "assistant", "content": self.openings[self.search.at]}]


@dataclass
class Rescued:
    """`own_N` are the groups to learn from, `right_N` for each peer's group how many right answers passed the
    checks and how many did not, `generated` everything that was sampled."""

    own_N: dict[int, list[Own]] = field(default_factory=dict)
    right_N: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    generated: list[Completion] = field(default_factory=list)


def rescued(experiment: Experiment, number: int, chosen_N: Mapping[int, Sequence[Answered]]) -> Rescued:
    """Every node tries the questions of the peers' groups it chose, until some of its answers are right."""
    result, cases = Rescued(), []
    for node, chosen_P in chosen_N.items():
        result.right_N[node] = []
        for peer in chosen_P:
            sequences_G = experiment.encoded(peer)
            read = PeerTokens(peer.dealt, sequences_G, experiment.swarm.logprobs(node, sequences_G))
            given = begun(experiment.recipe, experiment.learners[node].habits, read)
            result.right_N[node].append((given.taken, given.kept_out))
            search = Search(low=0, high=len(given.openings))
            cases.append(_Case(node, peer, given.openings, search))
    for attempt in range(TRIES):
        _try(experiment, number, attempt, [case for case in cases if case.search.at is not None], result)
    for case in cases:
        if case.found is not None:
            result.own_N.setdefault(case.node, []).append(case.found)
    return result


def _try(experiment: Experiment, number: int, attempt: int, cases: Sequence[_Case], result: Rescued) -> None:
    if not cases:
        return
    plan, swarm = experiment.plan, experiment.swarm
    cases_NP = [[case for case in cases if case.node == node] for node in range(plan.nodes)]
    groups_NPG = swarm.sample(
        [[case.prompt() for case in cases_P] for cases_P in cases_NP],
        plan.group,
        plan.max_tokens,
        experiment.seeds(number, f"rescue {attempt}"),
    )
    for cases_P, groups_PG in zip(cases_NP, groups_NPG, strict=True):
        for case, completions_G in zip(cases_P, groups_PG, strict=True):
            prompt, at = case.prompt(), case.peer.scored.group.coordinates
            whole_G = [
                msgspec.structs.replace(one, text=prompt[-1]["content"] + one.text) for one in completions_G
            ]
            scored = experiment.score(group_of(at, whole_G, plan.model))
            if scored.informative:
                case.found = Own(scored, swarm.prompt_tokens(prompt), completions_G)
            case.search = narrowed(case.search, scored.rewards_G)
            result.generated += completions_G
