"""What a node answered in a round, and how that becomes rows to learn from.

Shapes: `_G` completions of a group, `_S` sequences, `_T` tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.sapo import recipes
from app.sapo.groups import ScoredGroup
from app.sapo.recipes import TrainGroup
from engines.contract import Completion, Messages, Row, TokenSequence


@dataclass(frozen=True)
class Answered:
    """One question as one node answered it: the published group, and what only its own node knows (the
    tokens)."""

    node: int
    round: int
    scored: ScoredGroup
    prompt: Messages
    completions_G: list[Completion]
    dealt_G: tuple[int, ...]
    """The rewards that are trained on: the verifier's, or shuffled ones in the control."""


@dataclass(frozen=True)
class Learnt:
    """What one node's training step used. `peer_logprob` is the mean token log-prob of the peers' text under
    the learner before the step, nats, where it was asked for."""

    own: int
    peer: int
    batch_reward: float
    steps: int
    weighed: recipes.Weighed
    peer_logprob: float | None = None


def rows(
    sequences: Sequence[Sequence[TokenSequence]],
    weights: Sequence[recipes.Weights],
    old: Sequence[TrainGroup] | None,
) -> list[list[Row]]:
    """Sequences with a weight, as rows of each group that has any. `old` brings the sampler's log-probs,
    against which ratios are clipped."""
    olds: Sequence[TrainGroup | None] = old or [None] * len(sequences)
    groups = [
        [
            Row(
                prompt_T=sequence.prompt_T,
                completion_T=sequence.completion_T,
                weights_T=list(weights_T),
                old_logprobs_T=list(group.logprobs_GT[g]) if group and group.logprobs_GT else None,
            )
            for g, (sequence, weights_T) in enumerate(zip(sequences_G, weights_GT, strict=True))
            if any(weights_T)
        ]
        for sequences_G, weights_GT, group in zip(sequences, weights, olds, strict=True)
    ]
    return [rows_G for rows_G in groups if rows_G]


def train_group(
    answered: Answered, sequences_G: Sequence[TokenSequence], logprobs_GT: list[list[float]] | None
) -> TrainGroup:
    """A group as its trainer sees it: rewards, lengths, and log-probabilities where they are known."""
    return TrainGroup(
        rewards_G=answered.dealt_G,
        finished_G=answered.scored.group.finished_G,
        lengths_G=tuple(len(sequence.completion_T) for sequence in sequences_G),
        logprobs_GT=None if logprobs_GT is None else tuple(map(tuple, logprobs_GT)),
    )


def token_mean(logprobs: Sequence[Sequence[float]]) -> float | None:
    """Mean over all tokens, None without any.

    >>> token_mean([[-1.0], [-2.0, -3.0]])
    -2.0
    """
    tokens = [value for logprobs_T in logprobs for value in logprobs_T]
    return sum(tokens) / len(tokens) if tokens else None
