"""The first lesson: teaches a model to answer without examples in the prompt what it can answer with them.

Cross-entropy on a few dozen of the model's own right answers, all tokens of a minibatch weighing the same.
Ordinary rounds follow. What an owner's rows teach is in `app.learning.skill_lesson`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from engines.contract import Batch, Row, TokenSequence

PASSES = 4
"""Passes over all answers; more if these are few (see MIN_STEPS)."""
PER_STEP = 8
"""Answers in a minibatch."""
MIN_STEPS = 8
"""Minimum optimiser steps: a few answers are repeated until there are this many."""
LEARNED_NATS = 0.6
"""Mean nats per token over the last few steps at which a lesson ends. Below it the model memorises these texts,
and its everyday language gets worse (LOG.md)."""
_FEW_STEPS = 4  # the mean of four steps is steady enough to stop on
LEARNING_RATE = 5e-4
"""Learning rate, well above that of RL rounds: a few steps must change the form of the answers. Doubling it
harms the model's everyday language (LOG.md)."""


def lesson_batches(sequences: Sequence[TokenSequence], order: Random, passes: int = PASSES) -> list[Batch]:
    """Returns the lesson's optimiser steps: `passes` epochs over all answers, shuffled for each.

    >>> one = TokenSequence(prompt_T=[1], completion_T=[2, 0])
    >>> [len(batch.rows_S) for batch in lesson_batches([one] * 48, Random(0))] == [8] * 24
    True
    >>> lesson_batches([one], Random(0))[0].rows_S[0].weights_T
    [0.5, 0.5]
    """
    if not sequences:
        return []
    per_pass = math.ceil(len(sequences) / PER_STEP)
    dealt = [
        order.sample(list(sequences), len(sequences)) for _ in range(max(passes, -(-MIN_STEPS // per_pass)))
    ]
    return [
        imitation_batch(told[first : first + PER_STEP], LEARNING_RATE)
        for told in dealt
        for first in range(0, len(told), PER_STEP)
    ]


def learned_enough(losses: Sequence[float]) -> bool:
    """Whether a lesson may end: the mean of its last four losses (nats per token) is at most LEARNED_NATS.

    >>> learned_enough([2.0, 0.5, 0.5, 0.5]), learned_enough([2.0, 0.7, 0.5, 0.6, 0.5]), learned_enough([0.1])
    (False, True, False)
    """
    return len(losses) >= _FEW_STEPS and sum(losses[-_FEW_STEPS:]) <= _FEW_STEPS * LEARNED_NATS


def imitation_batch(sequences: Sequence[TokenSequence], rate: float, upper: bool = False) -> Batch:
    """Returns one supervised step: every token of every completion has the same weight, and the weights sum to
    1. `upper`: as in the batch."""
    tokens = sum(len(sequence.completion_T) for sequence in sequences)
    rows = [
        Row(
            prompt_T=sequence.prompt_T,
            completion_T=sequence.completion_T,
            weights_T=[1.0 / tokens] * len(sequence.completion_T),
        )
        for sequence in sequences
    ]
    return Batch(rows_S=rows, learning_rate=rate, upper=upper)
