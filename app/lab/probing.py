"""The held-out probe of all nodes at once: fixed questions, never trained on, answered at temperature 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.lab.plan import Probe
from app.lab.starter.measure import shows_work
from app.lab.swarm import Swarm
from app.sapo.groups import Group, ScoredGroup
from app.sapo.prompts import messages
from app.sapo.questions import Question
from engines.contract import Completion

ROWS = 512
"""Completions sampled in one batch: enough to fill a processor, few enough for an ordinary memory."""
TRIES = 8
THOROUGH_ITEMS = 64
"""Questions that are also answered TRIES times where pass@8 is asked for; evenly spaced over the probe."""


def measure(
    swarm: Swarm,
    score: Callable[[Group], ScoredGroup],
    questions: Sequence[Question],
    *,
    seeds_N: Sequence[int],
    max_tokens: int,
    thorough: bool,
) -> Probe:
    """Every node answers every question once; `thorough` adds pass@8 on some of them."""
    once = _answers(swarm, score, questions, 1, seeds_N, max_tokens)
    nodes = range(len(seeds_N))
    by_family: dict[str, list[int]] = {}
    for question, (rewards_N, _) in zip(questions, once, strict=True):
        by_family.setdefault(question.coordinates.family, []).extend(rewards_N)
    completions = [completion for _, completions_N in once for completion in completions_N]
    return Probe(
        pass_at_1_N=tuple(_share([rewards_N[node] for rewards_N, _ in once]) for node in nodes),
        families={family: _share(rewards) for family, rewards in sorted(by_family.items())},
        finished=_share([completion.finished for completion in completions]),
        worked=_share([shows_work(completion.text) for completion in completions]),
        pass_at_8_N=_pass_at_8(swarm, score, questions, seeds_N, max_tokens) if thorough else None,
    )


def _pass_at_8(
    swarm: Swarm,
    score: Callable[[Group], ScoredGroup],
    questions: Sequence[Question],
    seeds_N: Sequence[int],
    max_tokens: int,
) -> tuple[float, ...]:
    count = min(THOROUGH_ITEMS, len(questions))
    some = [questions[len(questions) * k // count] for k in range(count)]
    tried = _answers(swarm, score, some, TRIES, [seed + 1 for seed in seeds_N], max_tokens)
    return tuple(
        _share([any(rewards[node * TRIES : (node + 1) * TRIES]) for rewards, _ in tried])
        for node in range(len(seeds_N))
    )


def _answers(
    swarm: Swarm,
    score: Callable[[Group], ScoredGroup],
    questions: Sequence[Question],
    tries: int,
    seeds_N: Sequence[int],
    max_tokens: int,
) -> list[tuple[tuple[int, ...], list[Completion]]]:
    """For each question all nodes' rewards and completions, node by node. They are scored together as one
    group, so that the truth is regenerated once."""
    step = max(1, ROWS // (tries * len(seeds_N)))
    answers = []
    for start in range(0, len(questions), step):
        slice_P = questions[start : start + step]
        prompts_P = [messages(question.text) for question in slice_P]
        groups_NPG = swarm.sample(
            [prompts_P for _ in seeds_N], tries, max_tokens, [seed + 1000 * start for seed in seeds_N]
        )
        for position, question in enumerate(slice_P):
            completions = [completion for groups_PG in groups_NPG for completion in groups_PG[position]]
            scored = score(
                Group(
                    coordinates=question.coordinates,
                    completions_G=tuple(completion.text for completion in completions),
                    finished_G=tuple(completion.finished for completion in completions),
                    model="probe",
                )
            )
            answers.append((scored.rewards_G, completions))
    return answers


def _share(values: Sequence[int]) -> float:
    return sum(values) / len(values) if values else 0.0
