"""Mixes peers' groups into a round: takes them from the swarm's buffer, has the trainer read them as tokens of
this node's model, and leaves out those that do not fit. A person's answer is completed with own answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from app.learning.choosing import with_own_wrong_answers
from app.learning.round_weights import with_tokens
from app.node.record.state import NodeState
from app.node.round.peers import YOU
from app.node.round.tools import RoundTools, max_answer_tokens, prompts_at_once, score
from app.node.trainer.messages import GroupTokens, PeerTexts
from app.sapo import seeds
from app.sapo.asking import messages
from app.sapo.groups import GroupRecord, is_single_right_answer
from app.sapo.questions import QuestionPrompt
from app.sapo.recipes import Recipe
from engines.contract import EngineError


@dataclass(frozen=True)
class MixedGroups:
    """Peer groups that fit, as tokens of this node's model."""

    groups_P: list[GroupRecord]
    read_P: list[GroupRecord]
    """The same with the tokens to train on; a person's is combined with own answers."""
    unfit: int = 0
    """Groups left out because a completion or the prompt is too long for this model."""


NO_PEER_GROUPS = MixedGroups(groups_P=[], read_P=[])


async def mix_in_peers(tools: RoundTools, recipe: Recipe, before: NodeState) -> tuple[MixedGroups, str | None]:
    """Returns peer groups for the round after `before`, read by the trainer, and a reason if the engine refused
    them. A node without a swarm gets only its owner's groups."""
    groups_P = [] if before.vigil.alone else list(tools.owner_P)
    if tools.peers is not None and tools.settings.external and not before.vigil.alone:
        rng = Random(seeds.sampling_seed(tools.identity, before.round + 1, "mix"))
        groups_P += tools.peers.buffer.take_groups(recipe, tools.settings.external, rng)
    try:
        completed_P = await _completed(tools, before, groups_P)
        if not completed_P:
            return NO_PEER_GROUPS, None
        readings_P = await tools.link.read(
            [
                PeerTexts(
                    prompt=messages(group.question, before.way),
                    completions_G=whole.completions_G,
                    finished_G=whole.finished_G,
                )
                for group, whole in completed_P
            ],
            max_answer_tokens(before, tools.settings),
            logprobs=recipe.needs_peer_logprobs,
        )
    except EngineError as error:
        return NO_PEER_GROUPS, f"took nothing from peers: {error}"
    return mixed_groups(completed_P, readings_P), None


def mixed_groups(
    completed_P: Sequence[tuple[GroupRecord, GroupRecord]], readings_P: Sequence[GroupTokens | None]
) -> MixedGroups:
    """Returns the groups that fit, each with its rewards and its tokens."""
    fitting = [(*pair, reading) for pair, reading in zip(completed_P, readings_P, strict=True) if reading]
    return MixedGroups(
        groups_P=[group for group, _, _ in fitting],
        read_P=[
            with_tokens(whole, reading.sequences_G, reading.logprobs_GT, vouched=group.author == YOU)
            for group, whole, reading in fitting
        ],
        unfit=len(completed_P) - len(fitting),
    )


async def _completed(
    tools: RoundTools, before: NodeState, groups_P: Sequence[GroupRecord]
) -> list[tuple[GroupRecord, GroupRecord]]:
    """Returns each group with what is trained on. A person's answer is combined with own answers to the
    question."""
    people_P = [group for group in groups_P if is_single_right_answer(group.rewards_G)]
    completed_P = [(group, group) for group in groups_P if not is_single_right_answer(group.rewards_G)]
    if not people_P:
        return completed_P
    sampled = await tools.link.sample(
        [messages(group.question, before.way) for group in people_P],
        tools.settings.completions,
        max_answer_tokens(before, tools.settings),
        seeds.sampling_seed(tools.identity, before.round + 1, "people"),
        prompts_at_once=prompts_at_once(tools.engine, tools.settings.completions),
    )
    asked_P = [
        QuestionPrompt(coordinates=group.coordinates, text=group.question, held_out=False) for group in people_P
    ]
    own_P = await asyncio.to_thread(score, tools, asked_P, sampled.groups_PG)
    wholes_P = [with_own_wrong_answers(group, own) for group, own in zip(people_P, own_P, strict=True)]
    return completed_P + [
        (group, whole) for group, whole in zip(people_P, wholes_P, strict=True) if whole is not None
    ]
