"""The first lesson, which is played as a round: supervised steps that teach a model to give without examples
the right answers that it gave with examples in the prompt. And what brings back everyday language when rounds
that imitate peers (`app.node.round.imitating`) cost too much of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random

import msgspec

from app.learning import first_lesson
from app.learning.language import RECOVERY_RETENTION
from app.learning.placement import OwnExample
from app.node.record.snapshot import Phase
from app.node.record.state import NodeState
from app.node.round import language
from app.node.round.round import PlayedRound, supervised_round
from app.node.round.steps import take_steps
from app.node.round.tools import RoundTools, max_answer_tokens
from app.node.trainer.messages import PeerTexts
from app.sapo import seeds
from app.sapo.asking import messages
from engines.contract import Batch, EngineError

MAX_PERPLEXITY_RISE = 0.05
"""How much the perplexity of everyday replies may rise over its value before the first round."""
RECOVERY_STEPS, MAX_RECOVERIES, RECOVERY_RATE = 8, 3, 2e-4
"""Steps on small talk alone until its perplexity is measured again, how many times these follow a round, and
the learning rate at which they begin; it falls to zero."""


async def teach(tools: RoundTools, before: NodeState, lesson: Sequence[OwnExample]) -> PlayedRound:
    """Plays the first lesson, as the round after `before`. Answers that are too long for this model are
    skipped. Raises TrainerDied."""
    started, number = time.monotonic(), before.round + 1
    tools.report(Phase.LEARNING)
    readings = await tools.link.read(
        [
            PeerTexts(
                prompt=messages(one.question, before.way), completions_G=(one.completion,), finished_G=(True,)
            )
            for one in lesson
        ],
        max_answer_tokens(before, tools.settings),
        logprobs=False,
    )
    sequences = [reading.sequences_G[0] for reading in readings if reading is not None]
    order = Random(seeds.sampling_seed(tools.identity, number, "lesson"))
    stepped = await take_steps(
        tools.link,
        first_lesson.lesson_batches(sequences, order),
        partial(tools.report, Phase.LEARNING),
        first_lesson.learned_enough,
    )
    played = supervised_round(before, stepped, time.monotonic() - started, len(sequences))
    return replace(played, state=msgspec.structs.replace(played.state, taught=True))


async def recover_language(tools: RoundTools, before: NodeState) -> None:
    """Trains on small talk alone, at most MAX_RECOVERIES times, while the perplexity of everyday replies is
    more than MAX_PERPLEXITY_RISE over its value before the first round. `before`: the state before the round.
    Does nothing if the engine refuses, as the round's own steps are taken. Raises TrainerDied."""
    if not tools.engine.talks or not tools.remembered or before.everyday is None:
        return
    order = Random(seeds.sampling_seed(tools.identity, before.round + 1, "recovery"))
    held = partial(language.add_small_talk, tools.link, tools.remembered, order=order, grip=RECOVERY_RETENTION)
    steps = [
        Batch(rows_S=[], learning_rate=RECOVERY_RATE * (1 - number / RECOVERY_STEPS))
        for number in range(RECOVERY_STEPS)
    ]
    with suppress(EngineError):
        for _ in range(MAX_RECOVERIES):
            found = await language.perplexity(tools.link)
            if found is None or found <= (1 + MAX_PERPLEXITY_RISE) * before.everyday:
                return
            await take_steps(tools.link, steps, partial(tools.report, Phase.LEARNING), held=held)
