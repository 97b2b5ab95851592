"""Preserves the model's everyday language while it trains on puzzles.

Before the first round the log-probability of each token in some small talk is measured. From then on every
optimiser step includes a few of these replies; the weight of each token is the difference from its first
log-probability. This is the gradient of half the mean squared difference of log-probabilities: it is zero where
nothing has changed, so a step that does not harm the language is not affected.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

from engines.contract import Batch, Row, TokenSequence

MAX_PULL_NATS = 1.0
"""Differences are clipped to this many nats."""


class RetentionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for preserving everyday language: `read` replies are measured again from time to time,
    `per_step` of them are added to each step, and `strength` is a factor on all differences."""

    read: int
    per_step: int
    strength: float


ROUND_RETENTION = RetentionSettings(read=6, per_step=2, strength=0.5)
"""For ordinary rounds, where the answers of a step weigh about five times as much as the replies (LOG.md)."""
IMITATION_RETENTION = RetentionSettings(read=8, per_step=1, strength=1.0)
"""For short steps that imitate peers, whose answers are further from the model's own distribution (LOG.md)."""
RECOVERY_RETENTION = RetentionSettings(read=8, per_step=3, strength=1.0)
"""For steps on small talk alone."""


class PreservedReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply as tokens. `pull_T`: by how many nats the log-probability of each token should rise."""

    sequence: TokenSequence
    pull_T: list[float]


def needed_rise(before_T: Sequence[float], now_T: Sequence[float]) -> list[float]:
    """Returns by how many nats each token's log-probability should rise to be as before the first round,
    clipped to MAX_PULL_NATS. The last token, which ends the reply, gets 0: puzzles want short answers.

    >>> needed_rise([-1.0, -1.0, -5.0, -1.0], [-1.5, -0.75, -1.0, -9.0])
    [0.5, -0.25, -1.0, 0.0]
    """
    differences = [before - now for before, now in zip(before_T[:-1], now_T[:-1], strict=True)]
    return [max(-MAX_PULL_NATS, min(MAX_PULL_NATS, difference)) for difference in differences] + [0.0]


def add_replies(
    batches: Sequence[Batch],
    held: Sequence[PreservedReply],
    order: Random,
    grip: RetentionSettings = ROUND_RETENTION,
) -> list[Batch]:
    """Returns the steps of a round, each with `grip.per_step` random replies of `held` added; unchanged if
    `held` has fewer."""
    if len(held) < grip.per_step:
        return list(batches)
    return [
        msgspec.structs.replace(
            batch,
            rows_S=[*batch.rows_S, *reply_rows(order.sample(list(held), grip.per_step), grip.strength)],
        )
        for batch in batches
    ]


def reply_rows(held: Sequence[PreservedReply], strength: float) -> list[Row]:
    """Returns one row per reply. A token's weight is its needed rise times `strength`, divided by the number of
    tokens of all replies.

    >>> one = PreservedReply(sequence=TokenSequence(prompt_T=[1], completion_T=[2, 0]), pull_T=[0.5, 0.0])
    >>> [row.weights_T for row in reply_rows([one, one], 0.5)]
    [[0.0625, 0.0], [0.0625, 0.0]]
    """
    tokens = sum(len(one.pull_T) for one in held)
    return [
        Row(
            prompt_T=one.sequence.prompt_T,
            completion_T=one.sequence.completion_T,
            weights_T=[strength * pull / tokens for pull in one.pull_T],
        )
        for one in held
    ]
