"""The answers of a node in a round, and those that its step used. Shapes: `_G` completions of a group, `_T`
tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from app.sapo.groups import Group, ScoredGroup
from app.sapo.questions import Coordinates
from engines.contract import Completion, Messages

if TYPE_CHECKING:
    from app.learning.lesson import Weighed


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

    @property
    def dealt(self) -> ScoredGroup:
        """The group with the rewards that are trained on."""
        return msgspec.structs.replace(self.scored, rewards_G=self.dealt_G)


@dataclass(frozen=True)
class Learnt:
    """What one node's training step used. `peer_logprob` is the mean token log-prob of the peers' text under
    the learner before the step, nats, where it was asked for."""

    own: int
    peer: int
    batch_reward: float
    steps: int
    weighed: Weighed
    peer_logprob: float | None = None


def group_of(coordinates: Coordinates, completions_G: Sequence[Completion], model: str) -> Group:
    """What a model answered to one question, as it is published and scored."""
    return Group(
        coordinates=coordinates,
        completions_G=tuple(completion.text for completion in completions_G),
        finished_G=tuple(completion.finished for completion in completions_G),
        model=model,
    )


def token_mean(logprobs: Sequence[Sequence[float]]) -> float | None:
    """Mean over all tokens, None without any.

    >>> token_mean([[-1.0], [-2.0, -3.0]])
    -2.0
    """
    tokens = [value for logprobs_T in logprobs for value in logprobs_T]
    return sum(tokens) / len(tokens) if tokens else None
