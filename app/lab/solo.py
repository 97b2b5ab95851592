"""The whole of learning alone, on one page: read this first.

A round asks I questions, samples G answers of each, scores them, and makes optimiser steps that raise the
likelihood of answers that did better than the others to the same question. The default recipe, as a formula:

    A_i  = r_i - mean(r)                                   of the G answers to one question, r_i is 0 or 1
    loss = - steps / N  *  sum over a step's answers i, over their tokens t of  A_i * log pi(token_t)
    rate = base * min(1, (u + 1) / 5) * max(1/4, 1 / sqrt(1 + u / 100))        u: optimiser steps so far

N counts the tokens of finished answers to questions whose answers are neither all right nor all wrong. Only
these teach. They are dealt at random to steps of about two questions each, and N is the whole round's. An
answer that ran into the length limit is wrong, and its tokens are not trained on.

What was left out of the textbook, and why. No value model: the group's mean is the baseline. No division by the
standard deviation, which over-weighs questions that are nearly always right or wrong (Dr. GRPO). No ratio and
no clip: answers are seconds old. No KL term: a LoRA of rank 16 at this rate stays near, and everyday language
has small talk of its own in the app. No reference model and no second pass over a batch.

The engine is the real one, and questions, verifiers and seeds are the app's: a node alone with the same
identity makes the same adapter (tests/lab/test_solo.py). What the app adds: peers
(`app.learning.round_weights`), small talk, placement, a first lesson from right answers, saving, pausing.
`./shoal lab --solo` runs this page.

Shapes: `_P` questions, `_G` answers to one question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from math import sqrt
from pathlib import Path
from random import Random

from app.lab.plan import group_of
from app.learning.questions import own_questions, update_curriculum
from app.learning.round_weights import fresh_state
from app.sapo import seeds
from app.sapo.asking import messages
from app.sapo.groups import GroupRecord
from app.sapo.probe import probe_questions, score
from app.sapo.questions import QuestionPrompt
from app.sapo.scoring.sandbox import Sandbox, score_group
from engines.contract import Batch, Completion, Engine, Row
from engines.models.folder import read_settings
from engines.opening import open_engine

G, PER_STEP, PROBED = 8, 2, 10
"""Answers to a question, questions that teach for each optimiser step, and rounds between measurements."""


def rate(base: float, steps: int) -> float:
    """The learning rate of the next optimiser step after `steps` of them.

    >>> [round(rate(1.0, steps), 3) for steps in (0, 4, 100, 300, 10_000)]
    [0.2, 0.981, 0.707, 0.5, 0.25]
    """
    return base * max(0.25, 1.0 / sqrt(1.0 + steps / 100)) * min(1.0, (steps + 1) / 5)


def batches(
    groups: list[tuple[list[int], list[Completion], tuple[int, ...]]], base: float, before: int, order: Random
) -> list[Batch]:
    """The optimiser steps of a round's groups: (prompt tokens, answers, rewards). `before`: steps so far.

    Of two questions one teaches: two tokens with A = 1/2 and -1/2, so N = 2, in one step.

    >>> yes, no = (Completion(tokens_T=[n], logprobs_T=[0.0], finished=True, text="") for n in (1, 2))
    >>> (step,) = batches([([9], [yes, no], (1, 0)), ([9], [yes, yes], (1, 1))], 1.0, 0, Random(0))
    >>> [(row.completion_T, row.weights_T) for row in step.rows_S], step.learning_rate
    ([([1], [0.25]), ([2], [-0.25])], 0.2)
    """
    teaching = []
    for prompt_T, answers_G, rewards_G in groups:
        right_G = [reward * answer.finished for reward, answer in zip(rewards_G, answers_G, strict=True)]
        if 0 < sum(right_G) < len(right_G):
            teaching.append((prompt_T, answers_G, right_G))
    tokens = sum(len(one.tokens_T) for _, answers_G, _ in teaching for one in answers_G if one.finished)
    steps = (len(teaching) + PER_STEP // 2) // PER_STEP
    rows_PG = [
        [
            Row(
                prompt_T=prompt_T,
                completion_T=one.tokens_T,
                weights_T=[(right - sum(right_G) / len(right_G)) * (1.0 / tokens) * steps] * len(one.tokens_T),
            )
            for one, right in zip(answers_G, right_G, strict=True)
            if one.finished
        ]
        for prompt_T, answers_G, right_G in teaching
    ]
    if steps > 1:
        order.shuffle(rows_PG)
    return [
        Batch(rows_S=list(chain(*rows_PG[step::steps])), learning_rate=rate(base, before + step))
        for step in range(steps)
    ]


def learn(
    model: Path,
    levels: Mapping[str, int],
    rounds: int,
    identity: bytes,
    *,
    items: int = 256,
    threads: int | None = None,
    save: Path | None = None,
) -> Iterator[str]:
    """Learns for `rounds` rounds and yields a line for each measurement, on `items` held-out questions; at the
    end the adapter is written to `save`. `levels`: the families asked, and where each begins. All randomness
    comes from `identity`. Raises EngineError and QuestionError."""
    own = read_settings(model)
    adapter = seeds.hashed_seed("adapter", identity)
    engine = open_engine("torch", model, rank=own.rank, seed=adapter, threads=threads)
    state, steps = fresh_state(levels).curriculum, 0
    with Sandbox() as sandbox:
        asked_P = probe_questions(levels, items, sandbox.questions)
        for number in range(rounds + 1):
            if number > 0:
                asked = state.questions(own.groups)
                questions_P = own_questions(state, identity, number, asked, sandbox.questions)
                sampling = seeds.sampling_seed(identity, number, "own")
                groups, scored_P = answered(engine, sandbox, questions_P, G, own.max_tokens, sampling)
                order = Random(seeds.sampling_seed(identity, number, "steps"))
                for batch in batches(groups, own.learning_rate, steps, order):
                    engine.step(batch)
                    steps += 1
                state = update_curriculum(state, scored_P)
            if number % PROBED == 0 or number == rounds:
                probing = seeds.hashed_seed("probe sampling")
                _, scored_P = answered(engine, sandbox, asked_P, 1, own.max_tokens, probing)
                solved = [scored.rewards_G[0] for scored in scored_P]
                yield f"round {number}: {score(solved, [one.content for one in asked_P])} of new puzzles solved"
    if save is not None:
        engine.save(save)


def answered(
    engine: Engine, sandbox: Sandbox, questions_P: list[QuestionPrompt], g: int, max_tokens: int, seed: int
) -> tuple[list[tuple[list[int], list[Completion], tuple[int, ...]]], list[GroupRecord]]:
    """Samples `g` answers of each question at temperature 1, and has the verifiers score them in a process
    without files and network."""
    prompts_P = [messages(question.text) for question in questions_P]
    answers_PG = engine.sample(prompts_P, g, max_tokens, seed)
    scored_P = [
        score_group(sandbox, group_of(question.coordinates, answers_G, "solo"))
        for question, answers_G in zip(questions_P, answers_PG, strict=True)
    ]
    prompts_PT = map(engine.prompt_tokens, prompts_P)
    return list(zip(prompts_PT, answers_PG, [one.rewards_G for one in scored_P], strict=True)), scored_P
