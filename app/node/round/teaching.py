"""Lessons, which are played as rounds: supervised steps on right answers.

The first lesson teaches a model to give without examples the right answers that it gave with examples in the
prompt. A peer lesson (app.learning.peer_lesson) teaches peers' answers in families that the model cannot
begin with, while small talk is held."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from random import Random

import msgspec

from app.learning import first_lesson, peer_lesson
from app.learning.language import LESSON_RETENTION
from app.learning.peer_lesson import PeerLesson
from app.learning.placement import OwnExample
from app.node.record.snapshot import Phase
from app.node.record.state import NodeState
from app.node.round import language
from app.node.round import round as stepping
from app.node.round.round import PlayedRound, RoundTools, StepsTaken, max_answer_tokens, supervised_round
from app.node.trainer.messages import PeerTexts
from app.sapo import seeds
from app.sapo.asking import messages
from engines.contract import Batch

RECOVERY_STEPS = 8
"""Number of steps between two measurements of small talk in a lesson that holds it."""
MAX_RECOVERIES, RECOVERY_RATE = 3, 2e-4
"""Maximum number of times that RECOVERY_STEPS steps on small talk alone follow a lesson, and the learning
rate at which they begin; it falls to zero."""


async def teach(tools: RoundTools, before: NodeState, lesson: Sequence[OwnExample]) -> PlayedRound:
    """Plays the first lesson, as the round after `before`. Raises TrainerDied."""
    answers = [(one.question, one.completion) for one in lesson]
    played = await _teach(
        tools, before, answers, first_lesson.PASSES, partial(_take, tools, first_lesson.learned_enough)
    )
    return replace(played, state=msgspec.structs.replace(played.state, taught=True))


async def teach_from_peers(
    tools: RoundTools,
    before: NodeState,
    lesson: PeerLesson,
    save: Callable[[int, float], Awaitable[None]],
    steps: int = 0,
    seconds: float = 0.0,
) -> PlayedRound:
    """Plays a peer lesson, as the round after `before`. An interrupted lesson continues after `steps` steps
    that took `seconds`. Calls `save` with both figures after every RECOVERY_STEPS steps. Raises TrainerDied and
    EngineError."""
    began = time.monotonic() - seconds

    async def taken(number: int) -> None:
        await save(number, time.monotonic() - began)

    answers = [(one.question, one.completion) for one in lesson.answers] + list(lesson.beside)
    take = partial(_take_held, tools, taken=steps, save=taken)
    played = await _teach(tools, before, answers, peer_lesson.PASSES, take, seconds)
    authors = Counter(peer for _, peer in sorted({(one.id, one.peer) for one in lesson.answers}))
    return replace(played, lesson_families=tuple(lesson.levels), lesson_from=dict(authors.most_common()))


async def recover_language(
    tools: RoundTools, played: PlayedRound, harmed: Callable[[float | None], bool]
) -> tuple[PlayedRound, float | None]:
    """Trains on small talk alone, at most MAX_RECOVERIES times, while everyday replies are `harmed`:
    otherwise a lesson that harmed nothing else would be undone, and its minutes lost. Returns the round with
    these steps, and the perplexity of everyday replies, None if there is no small talk to train on. Raises
    TrainerDied and EngineError."""
    if not tools.engine.talks or not tools.remembered:
        return played, None
    state = played.state
    order = Random(seeds.sampling_seed(tools.identity, state.round, "recovery"))
    for left in range(MAX_RECOVERIES, -1, -1):
        found = await language.perplexity(tools.link)
        if not left or not harmed(found):
            break
        steps = [
            Batch(rows_S=[], learning_rate=RECOVERY_RATE * (1 - number / RECOVERY_STEPS))
            for number in range(RECOVERY_STEPS)
        ]
        held = await language.add_small_talk(tools.link, tools.remembered, steps, order, LESSON_RETENTION)
        taken = await stepping.take_steps(tools.link, held, partial(tools.report, Phase.LEARNING))
        state = msgspec.structs.replace(state, steps=state.steps + taken.steps)
    return replace(played, state=state), found


async def mean_answer_nats(tools: RoundTools, before: NodeState, lesson: PeerLesson) -> dict[str, float]:
    """Returns, by family, the mean negative log-probability (nats) of a whole answer, over a few answers that
    are short enough for this model. Raises TrainerDied."""
    tools.report(Phase.LEARNING)
    found: dict[str, float] = {}
    for part in lesson.parts:
        readings = await tools.link.read(
            [
                PeerTexts(
                    prompt=messages(one.question, before.way),
                    completions_G=(one.completion,),
                    finished_G=(True,),
                )
                for one in part.answers[: peer_lesson.ANSWERS_MEASURED]
            ],
            max_answer_tokens(before, tools.settings),
            logprobs=True,
        )
        nats = [-sum(one.logprobs_GT[0]) for one in readings if one is not None and one.logprobs_GT]
        if nats:
            found[part.family] = sum(nats) / len(nats)
    return found


async def _take(
    tools: RoundTools, enough: Callable[[Sequence[float]], bool], batches: list[Batch], order: Random
) -> StepsTaken:
    """Takes the steps until the losses are `enough`."""
    return await stepping.take_steps(tools.link, batches, partial(tools.report, Phase.LEARNING), enough)


async def _not_saved(steps: int) -> None: ...


async def _take_held(
    tools: RoundTools,
    batches: list[Batch],
    order: Random,
    taken: int = 0,
    save: Callable[[int], Awaitable[None]] = _not_saved,
) -> StepsTaken:
    """Takes the steps that are not yet `taken` in chunks of RECOVERY_STEPS, with a learning rate that falls
    linearly to zero: at a constant rate everyday language would depend on the last few steps (LOG.md). Small
    talk is held by its difference from the untrained model, so it is measured again before each chunk. `save`
    gets the number of steps taken so far after each."""
    batches = [
        msgspec.structs.replace(batch, learning_rate=batch.learning_rate * (1 - number / len(batches)))
        for number, batch in enumerate(batches)
    ]
    done: list[StepsTaken] = []
    for first in range(taken, len(batches), RECOVERY_STEPS):
        some = await language.add_small_talk(
            tools.link, tools.remembered, batches[first : first + RECOVERY_STEPS], order, LESSON_RETENTION
        )

        def tell(step: int, of: int, first: int = first) -> None:
            tools.report(Phase.LEARNING, first + step, len(batches))

        done.append(await stepping.take_steps(tools.link, some, tell))
        if done[-1].refusal:
            break
        await save(min(first + RECOVERY_STEPS, len(batches)))
    stats = stepping.combined_stats([one.stats for one in done if one.stats is not None])
    return StepsTaken(stats, taken + sum(one.steps for one in done), done[-1].refusal if done else None)


async def _teach(
    tools: RoundTools,
    before: NodeState,
    answers: Sequence[tuple[str, str]],
    passes: int,
    take: Callable[[list[Batch], Random], Awaitable[StepsTaken]],
    seconds: float = 0.0,
) -> PlayedRound:
    """Trains on completions to questions and returns the round; `seconds` of it have passed already. Answers
    that are too long for this model are skipped."""
    started, number = time.monotonic() - seconds, before.round + 1
    tools.report(Phase.LEARNING)
    readings = await tools.link.read(
        [
            PeerTexts(prompt=messages(question, before.way), completions_G=(completion,), finished_G=(True,))
            for question, completion in answers
        ],
        max_answer_tokens(before, tools.settings),
        logprobs=False,
    )
    sequences = [reading.sequences_G[0] for reading in readings if reading is not None]
    order = Random(seeds.sampling_seed(tools.identity, number, "lesson"))
    stepped = await take(first_lesson.lesson_batches(sequences, order, passes), order)
    return supervised_round(before, stepped, time.monotonic() - started, len(sequences))
