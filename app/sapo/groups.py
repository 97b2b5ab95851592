"""A group: one question with G completions from one policy. Groups, own and peers', are never split."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.sapo.questions import Coordinates

SOLVED = 0.99
"""Minimum verifier score of a solved completion; partial credit is never trained on."""
HUMAN = "human"
"""Used instead of a model's name if a person answered."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Completions of one question, as text. `finished_G`: whether each ended by itself."""

    coordinates: Coordinates
    completions_G: tuple[str, ...]
    finished_G: tuple[bool, ...]
    model: str


class ScoredGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group with this node's own scores. `scores_G`: raw verifier scores in [0, 1], for display only."""

    group: Group
    scores_G: tuple[float, ...]
    rewards_G: tuple[int, ...]

    @property
    def informative(self) -> bool:
        return informative(self.rewards_G)


def binary_rewards(scores_G: Sequence[float], finished_G: Sequence[bool]) -> tuple[int, ...]:
    """Returns 1 where the verifier's score is at least 0.99 and the completion ended by itself, else 0.

    A completion cut off at the length limit is a failure whatever it contains.

    >>> binary_rewards([1.0, 0.5, 1.0], [True, True, False])
    (1, 0, 0)
    """
    return tuple(
        int(score >= SOLVED and finished) for score, finished in zip(scores_G, finished_G, strict=True)
    )


def informative(rewards_G: Sequence[int]) -> bool:
    """Whether the rewards differ: only then does a group carry a gradient (SAPO, arXiv 2509.08721, section 5).

    >>> informative([0, 1, 0]), informative([1, 1, 1]), informative([])
    (True, False, False)
    """
    return len(set(rewards_G)) > 1


def is_single_right_answer(rewards_G: Sequence[int]) -> bool:
    """Whether a group is a single right answer, as a person publishes it: there is nothing to contrast it with.

    >>> is_single_right_answer((1,)), is_single_right_answer((0,)), is_single_right_answer((1, 0))
    (True, False, False)
    """
    return tuple(rewards_G) == (1,)
