"""A group: one question with G completions from one policy. Groups, own and peers', are never split."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.sapo.questions import Coordinates

SOLVED_SCORE = 0.99
"""Minimum verifier score of a solved completion; partial credit is never trained on."""
HUMAN_MODEL = "human"
"""Used instead of a model's name if a person answered."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Completions of one question, as text. `finished_G`: whether each ended by itself."""

    coordinates: Coordinates
    completions_G: tuple[str, ...]
    finished_G: tuple[bool, ...]
    model: str


class GroupRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question with its completions, from intake or sampling to weighing. Every step returns a record that
    knows more.

    As text: `finished_G`, whether each completion ended by itself. Scored by this node: `scores_G`, raw
    verifier scores in [0, 1], for display only, and the `rewards_G` to train on. A peer's, from intake on: its
    author's name and public `key` in hex, the `question` as this node made it and as it would answer it
    (`worked`, behind the short mark if it knows no work), the envelope's `id`,
    `created_ms` as the author claims (Unix ms) and `since_ms`, from which its age counts if that is later (for
    a group from the archive: when it arrived). Read by the trainer, in this model's tokens: `prompt_T`,
    `tokens_GT`, and their log-probs (nats) under the learner, if the recipe needs them."""

    coordinates: Coordinates
    completions_G: tuple[str, ...]
    finished_G: tuple[bool, ...]
    model: str
    scores_G: tuple[float, ...] = ()
    rewards_G: tuple[int, ...] = ()
    question: str = ""
    worked: str = ""
    author: str = ""
    key: str = ""
    id: str = ""
    created_ms: int = 0
    since_ms: int = 0
    prompt_T: Sequence[int] = ()
    tokens_GT: Sequence[Sequence[int]] = ()
    logprobs_GT: Sequence[Sequence[float]] | None = None
    vouched: bool = False
    """Whether the learner's owner wrote the right answer and wants it learned."""

    @property
    def informative(self) -> bool:
        return informative(self.rewards_G)

    @property
    def age_from_ms(self) -> int:
        """Unix milliseconds from which the group's age is measured."""
        return max(self.created_ms, self.since_ms)

    def with_scores(self, scores_G: Sequence[float], rewards_G: Sequence[int]) -> GroupRecord:
        return msgspec.structs.replace(self, scores_G=tuple(scores_G), rewards_G=tuple(rewards_G))


def binary_rewards(scores_G: Sequence[float], finished_G: Sequence[bool]) -> tuple[int, ...]:
    """Returns 1 where the verifier's score is at least 0.99 and the completion ended by itself, else 0.

    A completion cut off at the length limit is a failure whatever it contains.

    >>> binary_rewards([1.0, 0.5, 1.0], [True, True, False])
    (1, 0, 0)
    """
    return tuple(
        int(score >= SOLVED_SCORE and finished) for score, finished in zip(scores_G, finished_G, strict=True)
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
