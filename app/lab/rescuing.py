"""Prefix rescue for all nodes of a round at once: `app.learning.rescue` with a swarm's own answers.

Shapes: `_N` nodes, `_P` a node's questions, `_G` completions of a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from app.lab.answers import Answered, group_of
from app.learning.lesson import Own
from app.learning.rescue import TRIES, Search, narrowed, openings
from app.sapo.defences import trusted
from app.sapo.weighing import mean_logprob
from engines.contract import Completion, Messages, TokenSequence

if TYPE_CHECKING:
    from app.lab.experiment import Experiment


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
            right, kept_out = _passing(experiment, node, peer)
            result.right_N[node].append((len(right), kept_out))
            begun = next((found for text in right if (found := openings(text))), [])
            cases.append(_Case(node, peer, begun, Search(low=0, high=len(begun))))
    for attempt in range(TRIES):
        _try(experiment, number, attempt, [case for case in cases if case.search.at is not None], result)
    for case in cases:
        if case.found is not None:
            result.own_N.setdefault(case.node, []).append(case.found)
    return result


def _passing(experiment: Experiment, node: int, peer: Answered) -> tuple[list[str], int]:
    """A peer's right answers that pass the checks, the likeliest to the node first; and how many do not."""
    sequences_G: list[TokenSequence] = experiment.encoded(peer)
    logprobs_GT = experiment.swarm.logprobs(node, sequences_G)
    habits, checks = experiment.learners[node].habits, experiment.recipe.checks
    texts_G = [completion.text for completion in peer.completions_G]
    lengths_G = [len(sequence.completion_T) for sequence in sequences_G]
    passed_G = trusted(checks, habits, texts_G, lengths_G, logprobs_GT) if habits else (True,) * len(texts_G)
    rows = list(zip(texts_G, map(mean_logprob, logprobs_GT), passed_G, peer.dealt_G, strict=True))
    right = sorted([(mean, text) for text, mean, passed, reward in rows if reward and passed], reverse=True)
    return [text for _, text in right], sum(reward and not passed for _, _, passed, reward in rows)


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
