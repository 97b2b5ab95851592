"""One round: draw questions, answer and check them, mix in peers' groups, weigh, learn. Saving is the caller's.

Everything in a round follows from the state it starts from and the peer groups it takes, so a round that was
lost is simply played again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

import msgspec

from app.node import stepping
from app.node.drawing import own_questions
from app.node.figures import shuffled, tallies
from app.node.link import Link
from app.node.peers import NOBODY, Mixed, Peers, foreign, mixed, peer_rows, peer_train_group, weighty
from app.node.settings import Settings
from app.node.snapshot import Phase
from app.node.state import State
from app.sapo import curriculum, minibatches, seeds
from app.sapo.defences import Habits, observe
from app.sapo.groups import Group, ScoredGroup
from app.sapo.prompts import messages
from app.sapo.questions import Asked
from app.sapo.recipes import (
    RECIPES,
    Recipe,
    TrainGroup,
    Weighed,
    Weights,
    learning_rate,
    running_logprob,
    weigh,
)
from app.sapo.sandbox import Sandbox
from app.sapo.scoring import score_group
from engines.contract import Batch, Completion, EngineError, EngineInfo, Row, StepStats


class Report(Protocol):
    """Tells the views what is being done, and how many of how many completions are there."""

    def __call__(self, phase: Phase, done: int = 0, total: int = 0) -> None: ...


@dataclass(frozen=True)
class Tools:
    """What a round works with. `peers` None: the node learns alone."""

    link: Link
    engine: EngineInfo
    sandbox: Sandbox
    settings: Settings
    identity: bytes
    report: Report
    peers: Peers | None = None


@dataclass(frozen=True)
class Played:
    """A finished round: the state after it, and what the history and the views want to know of it."""

    state: State
    levels: dict[str, int]
    """Where the families stood when the round was drawn."""
    questions_P: list[Asked]
    scored_P: list[ScoredGroup]
    verdicts_P: list[ScoredGroup]
    """The same with the verifier's own rewards, also where the rewards trained on were shuffled."""
    mixed: Mixed
    weighed: Weighed
    stats: StepStats | None
    refusal: str | None
    """What the engine refused and why, to be said after "Round n"; the round still counts."""
    tokens: int
    sample_s: float
    score_s: float
    step_s: float
    seconds: float


async def play(tools: Tools, before: State) -> Played:
    """The round after `before`. Raises TrainerDied; then nothing has happened yet."""
    settings, report, number = tools.settings, tools.report, before.round + 1
    recipe = RECIPES[settings.recipe]
    started = time.monotonic()

    report(Phase.DRAWING)
    questions_P = await asyncio.to_thread(
        own_questions,
        before.curriculum,
        tools.identity,
        number,
        settings.groups,
        tools.sandbox.questions,
    )

    report(Phase.SAMPLING, 0, len(questions_P) * settings.completions)
    sampled = await tools.link.sample(
        [messages(question.text) for question in questions_P],
        settings.completions,
        settings.max_tokens,
        seeds.sampling_seed(tools.identity, number, "own"),
        prompts_at_once=prompts_at_once(tools.engine, settings.completions),
        tell=lambda done, total: report(Phase.SAMPLING, done, total),
    )
    asked = time.monotonic()

    report(Phase.SCORING)
    scored_P = verdicts_P = await asyncio.to_thread(score, tools, questions_P, sampled.groups_PG)
    if settings.shuffled_rewards:
        scored_P = [
            shuffled(scored, seeds.hashed("shuffled", tools.identity, number, position))
            for position, scored in enumerate(scored_P)
        ]
    checked = time.monotonic()

    report(Phase.LEARNING)
    peers, refusal = await mix(tools, recipe, number)
    own = [train_group(*pair) for pair in zip(scored_P, sampled.groups_PG, strict=True)]
    own_logprob = running_logprob(before.own_logprob, own)
    habits = observed(before.habits, sampled.groups_PG)
    peer = [
        peer_train_group(group, reading, recipe.checks, habits)
        for group, reading in zip(peers.groups_P, peers.readings_P, strict=True)
    ]
    weighed = weigh(recipe, own, peer, own_logprob or 0.0)
    rows_P = own_rows(
        sampled.prompts_PT,
        sampled.groups_PG,
        weighed.own,
        with_old=recipe.clip is not None,
        by_another=bool(tools.engine.sampler),
    )
    rows_P += peer_rows(peers.readings_P, weighed.peer)
    order = Random(seeds.sampling_seed(tools.identity, number, "steps"))
    batches = [  # none where every group's answers were all right or all wrong: nothing to learn from
        Batch(
            rows_S=[row for rows_G in rows_PG for row in rows_G],
            learning_rate=learning_rate(settings.learning_rate, before.steps + position, weighed.step),
            clip=recipe.clip,
        )
        for position, rows_PG in enumerate(minibatches.dealt(rows_P, weighed.steps, order))
    ]
    stepped = await stepping.take(tools.link, batches)

    finished = time.monotonic()
    after = msgspec.structs.replace(
        before,
        round=number,
        curriculum=curriculum.observe(before.curriculum, tallies(scored_P, before.curriculum.levels)),
        own_logprob=own_logprob,
        habits=habits,
        completions=before.completions + len(questions_P) * settings.completions,
        tokens=before.tokens + sampled.tokens,
        steps=before.steps + stepped.steps,
        seconds=before.seconds + finished - started,
    )
    return Played(
        state=after,
        levels=before.curriculum.levels,
        questions_P=questions_P,
        scored_P=scored_P,
        verdicts_P=verdicts_P,
        mixed=peers,
        weighed=weighed,
        stats=stepped.stats,
        refusal=stepped.refusal or refusal,
        tokens=sampled.tokens,
        sample_s=sampled.seconds,
        score_s=checked - asked,
        step_s=finished - checked,
        seconds=finished - started,
    )


async def mix(tools: Tools, recipe: Recipe, number: int) -> tuple[Mixed, str | None]:
    """Peer groups for a round, read by the trainer, and why there are none where the engine refused them."""
    if tools.peers is None or not tools.settings.external:
        return NOBODY, None
    rng = Random(seeds.sampling_seed(tools.identity, number, "mix"))
    groups_P = tools.peers.take(recipe, tools.settings.external, rng)
    if not groups_P:
        return NOBODY, None
    try:
        readings_P = await tools.link.read(
            [foreign(group) for group in groups_P],
            tools.settings.max_tokens,
            logprobs=recipe.needs_peer_logprobs,
        )
    except EngineError as error:
        return NOBODY, f"took nothing from peers: {error}"
    return mixed(groups_P, readings_P), None


def score(
    tools: Tools, questions_P: Sequence[Asked], groups_PG: Sequence[Sequence[Completion]]
) -> list[ScoredGroup]:
    """Every group with this node's own verdicts. Blocks; for a thread."""
    return [
        score_group(
            tools.sandbox,
            Group(
                coordinates=question.coordinates,
                completions_G=tuple(completion.text for completion in completions_G),
                finished_G=tuple(completion.finished for completion in completions_G),
                model=tools.settings.public_model,
            ),
        )
        for question, completions_G in zip(questions_P, groups_PG, strict=True)
    ]


def train_group(scored: ScoredGroup, completions_G: Sequence[Completion]) -> TrainGroup:
    """An own group as the recipe sees it. The sampler's log-probs stand for the learner's: where another
    program sampled they differ by a hundredth of a nat in the mean, and only gates for peers go by them."""
    return TrainGroup(
        rewards_G=scored.rewards_G,
        finished_G=scored.group.finished_G,
        lengths_G=tuple(len(completion.tokens_T) for completion in completions_G),
        mean_logprob_G=tuple(
            sum(completion.logprobs_T) / max(1, len(completion.logprobs_T)) for completion in completions_G
        ),
    )


def observed(habits: Habits | None, groups_PG: Sequence[Sequence[Completion]]) -> Habits | None:
    """Habits after a round of own answers, by the sampler's log-probs."""
    finished = [one for completions_G in groups_PG for one in completions_G if one.finished]
    return observe(habits, [one.logprobs_T for one in finished], [one.text for one in finished])


def own_rows(
    prompts_PT: Sequence[list[int]],
    groups_PG: Sequence[Sequence[Completion]],
    weights_PGT: Sequence[Weights],
    *,
    with_old: bool,
    by_another: bool,
) -> list[list[Row]]:
    """The training sequences that carry any weight, of every group that has some. `by_another`: another program
    than the learner sampled, so its log-probs correct the weights; as PPO's old ones they would clip what is
    only rounding."""
    return [
        [
            Row(
                prompt_T=prompt_T,
                completion_T=completion.tokens_T,
                weights_T=list(weights_T),
                old_logprobs_T=completion.logprobs_T if with_old and not by_another else None,
                sampler_logprobs_T=completion.logprobs_T if by_another else None,
            )
            for completion, weights_T in zip(completions_G, weights_GT, strict=True)
            if any(weights_T)
        ]
        for prompt_T, completions_G, weights_GT in zip(prompts_PT, groups_PG, weights_PGT, strict=True)
        if weighty(weights_GT)
    ]


def prompts_at_once(engine: EngineInfo, completions: int) -> int:
    """How many prompts one call of the engine gets: all for a small model, one for a large model on a
    processor.

    It decides the sampled tokens together with the seed, so it depends on the model and the device only.
    """
    rows_at_once = 2 * 10**9 // max(1, engine.parameters) * (1 if engine.device == "CPU" else 64)
    return max(1, min(512, max(8, rows_at_once)) // completions)
