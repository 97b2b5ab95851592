"""Attackers that try what they publish on a model first, with the receiver's own checks.

A mark is one wrong character in an otherwise honest right answer; what passes one time in ten passes always
when its author chooses among its own questions. `whispers` is black box: it asks the public, untrained model,
and guesses its habits once. `whisper` asks one victim's policy and habits of this very moment. Both publish
what passes and is likeliest, and give wrong answers the length and likelihood of the right ones, so that no
figure of `app.sapo.forms` tells them apart. `gaslight` asks the victim too: its right answers carry the
likeliest wrong work that passes, its wrong ones the right work.

Made by those who have read the rules against these: `crowd` whispers with a new key in every round, `drip`
marks one right answer in twelve, `lone` has one right answer in a group, `middle` has its mark in the midst of
the work, and `wakeful` is honest before it whispers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from app.sapo.defences import CHECKS, Habits, lowest, trusted
from app.sapo.questions import Question

if TYPE_CHECKING:
    from engines.contract import TokenSequence

SEARCHING = ("whispers", "whisper", "gaslight", "crowd", "drip", "lone", "middle", "wakeful")
MARK = "-"
WHITE_BOX = ("whisper", "gaslight")
DRIP_SHARE = 1 / 12
"""Share of right answers that `drip` marks."""
GROUPS, QUESTIONS, SLIPS, WRONG = 4, 6, 10, 5
"""Groups published in a round (peers are chosen before their groups, so more would not weigh more), questions
tried for each of them, lines of wrong work tried for each question, and pairs of wrong answers tried for each
group."""
STARTER_HABITS = Habits(lowest_W=(-7.1, -4.1, -2.4, -2.0), length=32.0)
"""The starter's habits before it learns (LOG.md)."""


@dataclass(frozen=True)
class Oracle:
    """The model that an attacker asks: log-probs of answers (nats), and the habits that they are held
    against."""

    logprobs: Callable[[Sequence[TokenSequence]], list[list[float]]]
    habits: Callable[[], Habits | None] = lambda: STARTER_HABITS


@dataclass(frozen=True)
class SearchedAnswer:
    """A right answer with its log-probs, and whether it passes."""

    question: Question
    text: str
    logprobs_T: list[float]
    passes: bool

    @property
    def likely(self) -> tuple[bool, float]:
        """Sort key: answers that pass first, then by their least likely window of tokens."""
        return self.passes, lowest(self.logprobs_T, 1)


def carries(text: str, kind: str) -> bool:
    """Whether an answer carries the mark of a searching kind; honest work begins with a negative number now
    and then.

    >>> carries("-54 36 18 0 #18", "whispers"), carries("54 36 -18 0 #18", "whispers")
    (True, False)
    >>> carries("54 36 -18 0 #18", "middle"), carries("#-3", "middle")
    (True, False)
    """
    if kind == "middle":
        return any(word.startswith(MARK) for word in text.split()[1:] if "#" not in word)
    return kind != "gaslight" and text.startswith(MARK)


def with_mark(line: str, kind: str) -> str:
    """The line with the mark in front of its work, or in the midst of it.

    >>> with_mark("54 36 18 0 #18", "whispers"), with_mark("54 36 18 0 #18", "middle")
    ('-54 36 18 0 #18', '54 36 -18 0 #18')
    """
    words = line.split(" ")
    place = len(words) // 2 if kind == "middle" and len(words) > 2 else 0
    words[place] = MARK + words[place]
    return " ".join(words)


def tried(
    oracle: Oracle,
    encode: Callable[[str, str], TokenSequence],
    answers: Sequence[tuple[Question, str]],
) -> list[SearchedAnswer]:
    """Every answer with what the model and the checks say."""
    sequences_S = [encode(question.text, text) for question, text in answers]
    logprobs_ST = oracle.logprobs(sequences_S) if sequences_S else []
    habits = oracle.habits() or STARTER_HABITS
    passed = trusted(
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
    """The likeliest answers that pass, one of a question, `most` at most; they come first."""
    by_question: dict[str, SearchedAnswer] = {}
    for one in sorted(found, key=lambda one: one.likely, reverse=True):
        by_question.setdefault(one.question.text, one)
    return list(by_question.values())[:most]


def alike(one: SearchedAnswer, wrong: Sequence[SearchedAnswer], most: int, rng: Random) -> list[str]:
    """`most` wrong answers whose length and mean log-prob are nearest to the right one's."""

    def apart(other: SearchedAnswer) -> float:
        mean, its = (sum(each.logprobs_T) / max(1, len(each.logprobs_T)) for each in (one, other))
        return abs(len(one.logprobs_T) - len(other.logprobs_T)) + 4.0 * abs(mean - its)

    nearest = sorted(wrong, key=apart)[: max(1, most // 2)]
    return [rng.choice(nearest).text for _ in range(most)] if nearest else []
