"""Plays one round: draws questions, samples and scores answers, mixes in peers' groups, weighs, and trains.

`play_round` shows the order: questions from identity and round number, and of waiting families; G
completions of each by the trainer; scores by the sandbox; peers' groups from the swarm's buffer, read as tokens
of this model; weights (`weigh_round`); between the steps these make, supervised ones on peers' right answers in
families that the model cannot do yet (`app.learning.imitation`); small talk added to every step; the steps.

The trainer owns tokens and weights, the sandbox owns the verifiers, and the round owns no state: it returns a
`PlayedRound`. The caller (`TrainingRun`) saves it first and then marks its peer groups as used, so a group
counts as used only when its round is saved. A round depends only on its initial state and the peer groups it
takes, so a lost round is played again.

Left out: sampling while training, because one model on one computer gains nothing by it, and trust in peers'
claims about their own answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

import msgspec

from app.learning.imitation import ROWS_PER_QUESTION, rehearsed
from app.learning.language import IMITATION_RETENTION, ROUND_RETENTION
from app.learning.placement import opens
from app.learning.questions import own_questions, update_curriculum
from app.learning.round_weights import (
    NO_GROUPS,
    OwnTokens,
    WeighedGroups,
    WeighedRound,
    weigh_round,
)
from app.node.record.settings import Settings
from app.node.record.snapshot import Phase
from app.node.record.state import NodeState
from app.node.round import language
from app.node.round.imitating import NOTHING_IMITATED, ImitatedRows, interleaved, rows_to_imitate
from app.node.round.mixing import NO_PEER_GROUPS, MixedGroups, mix_in_peers
from app.node.round.steps import StepsTaken, take_steps
from app.node.round.tools import RoundTools, max_answer_tokens, prompts_at_once, score
from app.node.trainer.messages import GroupTokens, PeerTexts
from app.sapo import curriculum, seeds
from app.sapo.asking import match_answer_mark, messages
from app.sapo.families import FAMILIES
from app.sapo.groups import GroupRecord
from app.sapo.questions import QuestionError, QuestionPrompt
from app.sapo.recipes import RECIPES
from app.sapo.sets.question_set import is_owners_set
from engines.contract import Completion, EngineError, StepStats


@dataclass(frozen=True)
class TriedFamily:
    """One question of a waiting family, with its scored answers, and the rewards of the same answers scored
    against another question of the family."""

    question: QuestionPrompt
    scored: GroupRecord
    elsewhere_G: tuple[int, ...]

    @property
    def opens(self) -> bool:
        return opens(self.scored.rewards_G, self.elsewhere_G)


@dataclass(frozen=True)
class PlayedRound:
    """A finished round: the state after it, and the figures for the history and the views."""

    state: NodeState
    levels: dict[str, int]
    """Each family's level when the round was drawn."""
    questions_P: list[QuestionPrompt]
    scored_P: list[GroupRecord]
    verdicts_P: list[GroupRecord]
    """The groups with the verifier's own rewards, which differ from those trained on if rewards were
    shuffled.
    """
    mixed: MixedGroups
    weighed: WeighedGroups
    stats: StepStats | None
    refusal: str | None
    """What the engine refused and why, as a phrase to follow "Round n"; the round still counts."""
    tokens: int
    sample_s: float
    score_s: float
    step_s: float
    seconds: float
    taught_answers: int = 0
    """Number of right answers that a lesson taught; such a round has no groups."""
    imitated: ImitatedRows = NOTHING_IMITATED
    tried: Sequence[TriedFamily] = ()


def supervised_round(before: NodeState, stepped: StepsTaken, seconds: float, answers: int) -> PlayedRound:
    """Returns the record of a supervised round: the state after it, `answers` right answers taught in the steps
    of `stepped`, in `seconds`. `before`: the state before it."""
    return PlayedRound(
        state=msgspec.structs.replace(
            before,
            round=before.round + 1,
            steps=before.steps + stepped.steps,
            seconds=before.seconds + seconds,
        ),
        levels=before.curriculum.levels,
        questions_P=[],
        scored_P=[],
        verdicts_P=[],
        mixed=NO_PEER_GROUPS,
        weighed=NO_GROUPS,
        stats=stepped.stats,
        refusal=stepped.refusal,
        tokens=0,
        sample_s=0.0,
        score_s=0.0,
        step_s=seconds,
        seconds=seconds,
        taught_answers=answers,
    )


FEW_ANSWERS = 0.2
"""A question set has few different answers if a constant answer is right for at least this share of its
rows.
"""


def _groups(before: NodeState, settings: Settings) -> int:
    """Returns the number of questions in a round: doubled if a question set has few different answers, because
    the model would swing from one answer to another (LOG.md)."""
    few = any(
        is_owners_set(name) and FAMILIES[name].guess[0] >= FEW_ANSWERS for name in before.curriculum.levels
    )
    return settings.groups * (1 + few)


async def play_round(tools: RoundTools, before: NodeState) -> PlayedRound:
    """Plays the round after `before`. Raises TrainerDied; nothing has changed then."""
    settings, report, number = tools.settings, tools.report, before.round + 1
    recipe = RECIPES[settings.recipe]
    started = time.monotonic()

    report(Phase.DRAWING)
    questions_P, pairs_P = await asyncio.to_thread(_questions, tools, before)

    report(Phase.SAMPLING, 0, len(questions_P) * settings.completions)
    sampled = await tools.link.sample(
        [messages(question.text, before.way) for question in questions_P],
        settings.completions,
        max_answer_tokens(before, settings),
        seeds.sampling_seed(tools.identity, number, "own"),
        prompts_at_once=prompts_at_once(tools.engine, settings.completions),
        tell=lambda done, total: report(Phase.SAMPLING, done, total),
    )
    tried = [one for pair in pairs_P if (one := await _try_family(tools, before, *pair)) is not None]
    asked = time.monotonic()

    report(Phase.SCORING)
    scored_P = verdicts_P = await asyncio.to_thread(score, tools, questions_P, sampled.groups_PG)
    if settings.shuffled_rewards:
        scored_P = [
            shuffled(scored, seeds.hashed_seed("shuffled", tools.identity, number, position))
            for position, scored in enumerate(scored_P)
        ]
    checked = time.monotonic()

    report(Phase.LEARNING)
    peers, refusal = await mix_in_peers(tools, recipe, before)
    keys_P = await _keys(tools, before, questions_P, scored_P)
    own_P = [
        OwnTokens(*own) for own in zip(scored_P, sampled.prompts_PT, sampled.groups_PG, keys_P, strict=True)
    ]
    imitated = await _imitated(tools, before, own_P)
    taught: WeighedRound[NodeState] = weigh_round(
        recipe,
        before,
        own_P,
        peers.read_P,
        rate=settings.learning_rate * before.rate,
        order=Random(seeds.sampling_seed(tools.identity, number, "steps")),
        by_another=bool(tools.engine.sampler),
        imitated=bool(imitated.answers),
    )
    steps = interleaved(taught.batches, imitated.batches)
    held = partial(
        language.add_small_talk,
        tools.link,
        tools.remembered,
        order=Random(seeds.sampling_seed(tools.identity, number, "small talk")),
        grip=IMITATION_RETENTION if imitated.answers else ROUND_RETENTION,
    )
    stepped = await take_steps(
        tools.link, [batch for batch, _ in steps], partial(report, Phase.LEARNING), held=held
    )
    taken = [*zip((other for _, other in steps), stepped.nats_BS, strict=False)]

    finished = time.monotonic()
    after = msgspec.structs.replace(
        taught.state,
        round=number,
        curriculum=update_curriculum(before.curriculum, scored_P),
        imitated=imitated.after(before.imitated, [nats_S for other, nats_S in taken if other]),
        completions=before.completions + (len(questions_P) + len(tried)) * settings.completions,
        tokens=before.tokens + sampled.tokens,
        steps=before.steps + sum(not other for other, _ in taken),  # those of imitation have their own rate
        seconds=before.seconds + finished - started,
    )
    return PlayedRound(
        state=after,
        levels=before.curriculum.levels,
        questions_P=questions_P,
        scored_P=scored_P,
        verdicts_P=verdicts_P,
        mixed=peers,
        weighed=taught.weighed,
        stats=stepped.stats,
        refusal=stepped.refusal or refusal,
        tokens=sampled.tokens,
        sample_s=sampled.seconds,
        score_s=checked - asked,
        step_s=finished - checked,
        seconds=finished - started,
        imitated=imitated,
        tried=tried,
    )


def _questions(tools: RoundTools, before: NodeState) -> tuple[list[QuestionPrompt], list[list[QuestionPrompt]]]:
    """Returns the round's own questions, and two of each waiting family that is tried, the first to be asked;
    a family without two is left out. Blocks."""
    settings, identity, number = tools.settings, tools.identity, before.round + 1
    count = before.curriculum.questions(before.groups or _groups(before, settings))
    make = partial(tools.sandbox.questions, worked=any(map(is_owners_set, before.curriculum.levels)))
    questions_P = own_questions(before.curriculum, identity, number, count, make)
    pairs_P: list[list[QuestionPrompt]] = []
    for place, family in enumerate(tools.trying):
        with contextlib.suppress(QuestionError):
            begun = curriculum.start({family: tools.trying[family]})
            pairs_P.append(own_questions(begun, identity, number, 2, make, count + 2 * place))
    return questions_P, pairs_P


async def _try_family(
    tools: RoundTools, before: NodeState, asked: QuestionPrompt, other: QuestionPrompt
) -> TriedFamily | None:
    """Asks a question, and scores its answers against it and against the `other`. None if the model cannot read
    it. Raises TrainerDied."""
    try:
        sampled = await tools.link.sample(
            [messages(asked.text, before.way)],
            tools.settings.completions,
            max_answer_tokens(before, tools.settings),
            seeds.sampling_seed(tools.identity, before.round + 1, "tried"),
            prompts_at_once=1,
            texts_only=True,
        )
    except EngineError:
        return None
    scored, elsewhere = await asyncio.to_thread(score, tools, [asked, other], sampled.groups_PG * 2)
    return TriedFamily(question=asked, scored=scored, elsewhere_G=elsewhere.rewards_G)


async def _imitated(tools: RoundTools, before: NodeState, own_P: Sequence[OwnTokens]) -> ImitatedRows:
    """Returns peers' answers to imitate in the round after `before`, which has these own groups: none while the
    brake holds, or under the control."""
    settings, number = tools.settings, before.round + 1
    if not tools.offered or before.vigil.alone or settings.shuffled_rewards:
        return NOTHING_IMITATED
    return await rows_to_imitate(
        tools.link,
        before.way,
        max_answer_tokens(before, settings),
        tools.offered,
        int(ROWS_PER_QUESTION * (before.groups or settings.groups) * before.vigil.share),
        before.imitated,
        Random(seeds.sampling_seed(tools.identity, number, "imitated")),
        rehearsed(own_P),
    )


def shuffled(scored: GroupRecord, seed: int) -> GroupRecord:
    """Returns a control: the rewards shuffled among the group's finished completions.

    They then say nothing about the answers, so a curve that still rises would not show learning.
    """
    finished = [at for at, done in enumerate(scored.finished_G) if done]
    dealt = [scored.rewards_G[at] for at in finished]
    Random(seed).shuffle(dealt)
    rewards_G = list(scored.rewards_G)
    for at, reward in zip(finished, dealt, strict=True):
        rewards_G[at] = reward
    return msgspec.structs.replace(scored, rewards_G=tuple(rewards_G))


async def _keys(
    tools: RoundTools, before: NodeState, questions_P: Sequence[QuestionPrompt], scored_P: Sequence[GroupRecord]
) -> list[Completion | None]:
    """Returns, for each of the owner's questions that no completion solved, the true answer in this model's
    tokens."""
    keyed = not tools.settings.shuffled_rewards
    keys_P = [
        match_answer_mark(asked.worked, scored.completions_G)
        if keyed and is_owners_set(asked.coordinates.family) and asked.worked and not any(scored.rewards_G)
        else ""
        for asked, scored in zip(questions_P, scored_P, strict=True)
    ]
    readings = iter(
        await tools.link.read(
            [
                PeerTexts(prompt=messages(asked.text, before.way), completions_G=(key,), finished_G=(True,))
                for asked, key in zip(questions_P, keys_P, strict=True)
                if key
            ],
            max_answer_tokens(before, tools.settings),
            logprobs=True,
        )
        if any(keys_P)
        else ()
    )
    return [_as_completion(key, next(readings)) if key else None for key in keys_P]


def _as_completion(text: str, reading: GroupTokens | None) -> Completion | None:
    """Returns None for an answer that is too long for this model."""
    if reading is None or reading.logprobs_GT is None:
        return None
    tokens_T, logprobs_T = reading.sequences_G[0].completion_T, reading.logprobs_GT[0]
    return Completion(tokens_T=tokens_T, logprobs_T=logprobs_T, finished=True, text=text)
