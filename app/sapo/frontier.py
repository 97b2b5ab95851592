"""Frontier exchange: answering again, with the own policy, what others found just solvable.

Peers tell which questions they asked and how many of their answers were right. A node answers the most
promising of them itself, so almost everything it learns from is its own text. Where all its answers to such a
question fail, one verified answer of the peer joins the group and is learned from with care (success rescue,
after LUFFY, arXiv 2504.14945). It costs as much generation as working alone.

Shapes: `_G` completions of a group, `_T` tokens of one completion, `_P` questions offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from random import Random

import msgspec

PEER_WEIGHT = 0.3
"""An answer of a peer counts this much of an own one: another policy gave it."""
PRIOR = 0.5
"""Right and wrong answers imagined beforehand (Jeffreys)."""
FLOOR = 0.01
"""Keeps a question in play whatever its rate."""
LIFETIME = 10.0
"""Rounds after which a question's priority has fallen to 1/e."""
GAMMA = 0.1
"""Of the rescue's token weights."""


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a question: right answers and all answers, own and peers', and its age in rounds."""

    age: int
    peer_solved: int
    peer_answered: int
    own_solved: int = 0
    own_answered: int = 0


def rate(sighting: Sighting) -> float:
    """Mean of the Beta posterior of the node's own chance to solve a question.

    >>> round(rate(Sighting(age=0, peer_solved=1, peer_answered=8)), 3)
    0.235
    """
    right = PRIOR + sighting.own_solved + PEER_WEIGHT * sighting.peer_solved
    return right / (2 * PRIOR + sighting.own_answered + PEER_WEIGHT * sighting.peer_answered)


def priority(sighting: Sighting) -> float:
    """`(p (1 - p) + FLOOR) e^(-age / LIFETIME)`: most at the frontier, where half of the answers are right.

    >>> [round(priority(Sighting(age=0, peer_solved=k, peer_answered=8)), 3) for k in (1, 4, 7)]
    [0.19, 0.26, 0.19]
    """
    p = rate(sighting)
    return (p * (1.0 - p) + FLOOR) * exp(-sighting.age / LIFETIME)


def choose(offers_P: Sequence[Sighting], j: int, rng: Random) -> list[int]:
    """At most `j` distinct positions, drawn one after another with chances in proportion to priority."""
    left = dict(enumerate(map(priority, offers_P)))
    chosen: list[int] = []
    while left and len(chosen) < j:
        (place,) = rng.choices(list(left), list(left.values()))
        chosen.append(place)
        del left[place]
    return chosen


def tapered(logprobs_T: Sequence[float]) -> list[float]:
    """What the tokens of a peer's answer count in a rescued group: 4 g pi / (pi + g)^2 with g = GAMMA, at most
    1 (at pi = g), little for what the learner finds absurd or knows already. `logprobs_T`: the learner's, nats.

    The rest follows from the group: G failures and one success give the failures -1 / (G + 1) and the peer's
    answer G / (G + 1).

    >>> [round(weight, 2) for weight in tapered([-6.908, -2.303, 0.0])]
    [0.04, 1.0, 0.33]
    """
    return [4 * GAMMA * exp(lp) / (exp(lp) + GAMMA) ** 2 for lp in logprobs_T]


def rescuer(rewards_G: Sequence[int], peer_rewards_G: Sequence[int]) -> int | None:
    """The first right answer of the peer, where none of the node's own is right; else None.

    >>> rescuer([0, 0], [0, 1]), rescuer([0, 1], [0, 1]), rescuer([0, 0], [0, 0])
    (1, None, None)
    """
    if any(rewards_G):
        return None
    return next((place for place, reward in enumerate(peer_rewards_G) if reward), None)
