"""Figures of a round, as pure functions over its scored groups."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from enum import Enum
from hashlib import sha256

import msgspec

from app.sapo.groups import ScoredGroup
from app.sapo.questions import QuestionPrompt


def share(flags: Iterable[object]) -> float:
    """Share of true ones, 0 of none.

    >>> share([1, 0, True, False]), share([])
    (0.5, 0.0)
    """
    values = [bool(flag) for flag in flags]
    return sum(values) / len(values) if values else 0.0


def shuffled(scored: ScoredGroup, seed: int) -> ScoredGroup:
    """A control: the same rewards, dealt out at random among the group's finished completions.

    The rewards then say nothing about the answers, so a curve that still rises would not be learning.
    """
    finished = [at for at, done in enumerate(scored.group.finished_G) if done]
    dealt = [scored.rewards_G[at] for at in finished]
    random.Random(seed).shuffle(dealt)
    rewards_G = list(scored.rewards_G)
    for at, reward in zip(finished, dealt, strict=True):
        rewards_G[at] = reward
    return msgspec.structs.replace(scored, rewards_G=tuple(rewards_G))


def questions_mark(questions: Sequence[QuestionPrompt]) -> str:
    """Eight characters that change with the set of questions: probes over other questions are another curve."""
    coordinates = sorted(question.coordinates for question in questions)
    return sha256(msgspec.json.encode(coordinates)).hexdigest()[:8]


class Speech(Enum):
    """How everyday language fared."""

    KEPT = "kept"
    WORSE = "worse"
    LOST = "lost"


def speech(rise: float) -> Speech:
    """What a rise of perplexity means, as a share of what it was.

    >>> speech(0.05).value, speech(0.12).value, speech(0.3).value
    ('kept', 'worse', 'lost')
    """
    return Speech.KEPT if rise <= 0.05 else Speech.WORSE if rise <= 0.2 else Speech.LOST


def speech_sentence(rise: float) -> str:
    """What a rise of the perplexity, as a share, means for people.

    >>> speech_sentence(0.012), speech_sentence(-0.03)
    ('It speaks as well as before. Everyday replies surprise it 1 % more.', \
'It speaks as well as before. Everyday replies surprise it 3 % less.')
    >>> speech_sentence(0.3)
    'It is losing everyday language. Everyday replies surprise it 30 % more.'
    """
    how = {
        Speech.KEPT: "It speaks as well as before.",
        Speech.WORSE: "It speaks a little worse than before.",
        Speech.LOST: "It is losing everyday language.",
    }[speech(rise)]
    if rise < 0:
        return f"{how} Everyday replies surprise it {abs(100 * rise):.0f} % less."
    return f"{how} Everyday replies surprise it {100 * rise:.0f} % more."
