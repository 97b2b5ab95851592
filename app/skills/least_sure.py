"""Which rows of a table without answers a skill should be told about: those that it is least sure of.

Margin sampling (Scheffer et al. 2001): of a choice, the distance between the two likeliest labels; of a free
answer, its probability. Texts that are nearly alike teach nearly the same, so only one of them is taken while
there are others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.skills.answering import SkillAnswer
from app.skills.baseline import features

ALIKE_COSINE = 0.8
"""Cosine between the character n-grams of two texts from which they are nearly alike."""


def least_sure(texts: Sequence[str], answers: Sequence[SkillAnswer | None], count: int) -> list[int]:
    """Returns the places of at most `count` texts, the least sure first. `answers`: the skill's, None for a
    text that it couldn't read, which is left out.

    >>> said = [SkillAnswer(text="ham", sure=sure, labels={"ham": sure, "spam": 1 - sure}) for sure in
    ...         (0.9, 0.6, 0.61, 0.7, 0.99)]
    >>> least_sure(["lunch?", "win a car now!", "Win a car now!!", "see you", "thanks"], said, 3)
    [1, 3, 0]
    >>> least_sure(["win a car now!", "Win a car now!!"], said[1:3], 2)
    [0, 1]
    """
    asked = {place: one for place, one in enumerate(answers) if one is not None}
    taken: list[int] = []
    passed: list[int] = []
    known: list[Mapping[int, float]] = []
    for place in sorted(asked, key=lambda place: (margin(asked[place]), place)):
        if len(taken) == count:
            break
        own = features(texts[place])
        if any(_cosine(own, other) >= ALIKE_COSINE for other in known):
            passed.append(place)
            continue
        taken.append(place)
        known.append(own)
    return [*taken, *passed][:count]


def margin(answer: SkillAnswer) -> float:
    """Returns how sure an answer is, in [0, 1].

    >>> round(margin(SkillAnswer(text="a", sure=0.5, labels={"a": 0.5, "b": 0.3, "c": 0.2})), 6)
    0.2
    >>> margin(SkillAnswer(text="ran", sure=0.4))
    0.4
    """
    best, *others = sorted(answer.labels.values(), reverse=True) or (answer.sure,)
    return best - max(others, default=0.0)


def _cosine(one: Mapping[int, float], other: Mapping[int, float]) -> float:
    return sum(weight * other.get(column, 0.0) for column, weight in one.items())
