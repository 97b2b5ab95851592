"""Attackers that first test their answers on a model, with the receiver's own checks.

A mark is one wrong character in an otherwise honest right answer; a mark that passes one time in ten always
passes if its author selects among its own questions. `whispers` is black box: it queries the public, untrained
model, with a fixed estimate of the habits. `whisper` queries one victim's current policy and habits. Both
publish the likeliest answers that pass, and give wrong answers the length and likelihood of the right ones, so
that no feature of `app.sapo.forms` separates them. `gaslight` queries the victim too: its right answers contain
the likeliest wrong work that passes, its wrong ones the right work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from app.sapo.defences import CHECKS, Habits, lowest_window_mean, trusted_answers
from app.sapo.questions import Question

if TYPE_CHECKING:
    from engines.contract import TokenSequence

SEARCHING = ("whispers", "whisper", "gaslight")
MARK = "-"
WHITE_BOX = ("whisper", "gaslight")
GROUPS, QUESTIONS, SLIPS, WRONG = 4, 6, 10, 5
"""Maximum groups published per round (peers are chosen before their groups, so more would have no more weight),
questions tested per group, wrong lines of work tested per question, and half the number of wrong answers tested
per group."""
STARTER_HABITS = Habits(lowest_W=(-7.1, -4.1, -2.4, -2.0), length=32.0)
"""The starter's habits before it learns (LOG.md)."""


@dataclass(frozen=True)
class Oracle:
    """The model that an attacker queries: log probs of answers (nats), and the habits that they are checked
    against."""

    logprobs: Callable[[Sequence[TokenSequence]], list[list[float]]]
    habits: Callable[[], Habits | None] = lambda: STARTER_HABITS


@dataclass(frozen=True)
class SearchedAnswer:
    """A tested answer with its log probs, and whether it passes the receiver's checks."""

    question: Question
    text: str
    logprobs_T: list[float]
    passes: bool

    @property
    def sort_key(self) -> tuple[bool, float]:
        """Sort key: answers that pass are larger, then by the log prob of their least likely token."""
        return self.passes, lowest_window_mean(self.logprobs_T, 1)


def carries_mark(text: str, kind: str) -> bool:
    """True if an answer carries the mark of a searching kind; honest work sometimes starts with a negative
    number too.

    >>> carries_mark("-54 36 18 0 #18", "whispers"), carries_mark("54 36 -18 0 #18", "whispers")
    (True, False)
    """
    return kind != "gaslight" and text.startswith(MARK)


def evaluate_answers(
    oracle: Oracle,
    encode: Callable[[str, str], TokenSequence],
    answers: Sequence[tuple[Question, str]],
) -> list[SearchedAnswer]:
    """Tests every answer with the model and the receiver's checks."""
    sequences_S = [encode(question.text, text) for question, text in answers]
    logprobs_ST = oracle.logprobs(sequences_S) if sequences_S else []
    habits = oracle.habits() or STARTER_HABITS
    passed = trusted_answers(
        CHECKS,
        habits,
        [text for _, text in answers],
        [len(sequence.completion_T) for sequence in sequences_S],
        logprobs_ST,
    )
    return [
        SearchedAnswer(question, text, logprobs_T, ok)
        for (question, text), logprobs_T, ok in zip(answers, logprobs_ST, passed, strict=True)
    ]


def best(found: Sequence[SearchedAnswer], most: int) -> list[SearchedAnswer]:
    """The likeliest answers, one per question, at most `most`; those that pass come first."""
    by_question: dict[str, SearchedAnswer] = {}
    for one in sorted(found, key=lambda one: one.sort_key, reverse=True):
        by_question.setdefault(one.question.text, one)
    return list(by_question.values())[:most]


def nearest_wrong_answers(
    one: SearchedAnswer, wrong: Sequence[SearchedAnswer], most: int, rng: Random
) -> list[str]:
    """Draws `most` wrong answers, with repeats, from the half as many whose length and mean log prob are
    nearest to the right one's."""

    def apart(other: SearchedAnswer) -> float:
        mean, its = (sum(each.logprobs_T) / max(1, len(each.logprobs_T)) for each in (one, other))
        return abs(len(one.logprobs_T) - len(other.logprobs_T)) + 4.0 * abs(mean - its)

    nearest = sorted(wrong, key=apart)[: max(1, most // 2)]
    return [rng.choice(nearest).text for _ in range(most)] if nearest else []
