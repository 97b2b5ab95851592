"""Lesson zero as a round of its own: own right answers, given behind examples, are learned without them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from random import Random

import msgspec

from app.learning import zero
from app.learning.lesson import NOTHING
from app.learning.placement import Taught
from app.node.record.snapshot import Phase
from app.node.record.state import NodeState
from app.node.round import round as stepping
from app.node.round.peers import NOBODY
from app.node.round.round import Played, Tools, longest
from app.node.trainer.messages import Foreign
from app.sapo import seeds
from app.sapo.asking import messages


async def teach(tools: Tools, before: NodeState, lesson: Sequence[Taught]) -> Played:
    """The round after `before`. Answers that are too long for this model are left out. Raises TrainerDied."""
    started, number = time.monotonic(), before.round + 1
    tools.report(Phase.LEARNING)
    readings = await tools.link.read(
        [
            Foreign(
                prompt=messages(one.question, before.way), completions_G=(one.completion,), finished_G=(True,)
            )
            for one in lesson
        ],
        longest(before, tools.settings),
        logprobs=False,
    )
    sequences = [reading.sequences_G[0] for reading in readings if reading is not None]
    order = Random(seeds.sampling_seed(tools.identity, number, "lesson"))
    tell = partial(tools.report, Phase.LEARNING)
    stepped = await stepping.take(tools.link, zero.batches(sequences, order), tell, zero.learned)
    seconds = time.monotonic() - started
    return Played(
        state=msgspec.structs.replace(
            before,
            round=number,
            steps=before.steps + stepped.steps,
            seconds=before.seconds + seconds,
            taught=True,
        ),
        levels=before.curriculum.levels,
        questions_P=[],
        scored_P=[],
        verdicts_P=[],
        mixed=NOBODY,
        weighed=NOTHING,
        stats=stepped.stats,
        refusal=stepped.refusal,
        tokens=0,
        sample_s=0.0,
        score_s=0.0,
        step_s=seconds,
        seconds=seconds,
        lesson=len(sequences),
    )
