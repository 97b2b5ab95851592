"""The frontier recipe in the lab: peers' questions answered again, and groups rescued by a peer's success."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import msgspec

from app.lab.answers import Answered, train_group
from app.lab.swarm import Swarm
from app.sapo import frontier, recipes
from app.sapo.recipes import TrainGroup
from engines.contract import TokenSequence


@dataclass(frozen=True)
class Again:
    """A question of a peer, as the peer answered it and as the node did."""

    peer: Answered
    own: Answered


def pick(pool: Sequence[Answered], wanted: int, number: int, rng: Random) -> list[Answered]:
    """The questions that a node answers again, of informative groups that it has not had."""
    usable = [answered for answered in pool if answered.scored.informative]
    offers = [
        frontier.Sighting(age=number - a.round, peer_solved=sum(a.dealt_G), peer_answered=len(a.dealt_G))
        for a in usable
    ]
    return [usable[place] for place in frontier.choose(offers, wanted, rng)]


Logprobs = Callable[[list[list[TokenSequence]]], list[list[list[float]]]]
"""Of groups of sequences under the node's policy."""


@dataclass(frozen=True)
class Learnable:
    """Groups answered again, ready to be weighed with the own ones: sequences, trainer's groups, and for each
    the token factors of its last completion where that is the peer's."""

    sequences: list[list[TokenSequence]]
    groups: list[TrainGroup]
    factors: list[list[float] | None]


def learnable(again: Sequence[Again], swarm: Swarm, logprobs: Logprobs) -> Learnable:
    """Own answers as they are; where all failed, with one right answer of the peer behind them."""
    sequences, groups = [], []
    lent: list[TokenSequence | None] = []
    for one in again:
        prompt_T = swarm.prompt_tokens(one.own.prompt)
        own_G = [TokenSequence(prompt_T=prompt_T, completion_T=c.tokens_T) for c in one.own.completions_G]
        group = train_group(one.own, own_G, None)
        place = frontier.rescuer(one.own.dealt_G, one.peer.dealt_G)
        helper = None
        if place is not None:
            helper = swarm.encode(one.peer.prompt, one.peer.completions_G[place].text, True)
            own_G.append(helper)
            group = msgspec.structs.replace(
                group,
                rewards_G=(*group.rewards_G, 1),
                finished_G=(*group.finished_G, True),
                lengths_G=(*group.lengths_G, len(helper.completion_T)),
            )
        sequences.append(own_G)
        groups.append(group)
        lent.append(helper)
    found = iter(logprobs([[helper] for helper in lent if helper is not None]))
    factors = [None if helper is None else frontier.tapered(next(found)[0]) for helper in lent]
    return Learnable(sequences, groups, factors)


def with_care(weights: Sequence[recipes.Weights], learnable: Learnable) -> list[recipes.Weights]:
    """The weights of groups answered again, the peer's tokens taken down by their factors."""
    careful = []
    for weights_GT, factors_T in zip(weights, learnable.factors, strict=True):
        if factors_T is None:
            careful.append(weights_GT)
        else:
            *own_GT, lent_T = weights_GT
            careful.append((*own_GT, tuple(w * f for w, f in zip(lent_T, factors_T, strict=True))))
    return careful
