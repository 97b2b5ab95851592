"""Mixing: chooses the J peer groups that a round trains on in addition to its own.

The pool contains groups that peers published and this node has regenerated and scored. Functions return
positions in the pool, so nothing here sees answers or tokens. A small pool gives fewer than J groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

from app.sapo.groups import informative, lone
from app.sapo.recipes import Recipe

FEW_PEERS = 4
"""With more peers than this in the pool, no peer provides more than a quarter of J (`peers first` only)."""


MAX_PEOPLE = 1
"""Maximum groups of people (one right answer each) in a round; each costs one sampled question, to find out
whether there is anything to learn."""
DOUBTED_TRUST = 1 / 3
"""A peer with less trust than this is doubted: it is usually not used to fill up a round with fewer than J
groups."""
SECOND_CHANCE = 1 / 4
"""A doubted peer is still considered in a round with this factor times its trust as the probability, so that
wrong doubts are corrected."""


class PeerOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A peer group as seen by the choice: who sent it, its age in this node's rounds, and this node's own
    rewards. `trust`: the weight with which its peer is chosen (`peers first`)."""

    peer: str
    age: int
    rewards_G: tuple[int, ...]
    trust: float = 1.0


def choose(recipe: Recipe, pool_P: Sequence[PeerOffer], j: int, rng: Random) -> list[int]:
    """Chooses at most `j` distinct positions of `pool_P`, informative groups only, in the order of choice.

    `uniform` takes every informative group with equal probability (SAPO, arXiv 2509.08721, section 5). `peers
    first` draws a peer in proportion to its trust and then one of its groups, so that publishing more gives no
    more influence. It drops groups older than the recipe's `max_age`, and takes at most a quarter of `j` (at
    least one group) from one peer if more than FEW_PEERS peers have usable groups. Doubted peers are left out
    in most rounds, even if fewer than `j` groups are chosen then. With `peers first` a person's group may be
    added.
    """
    if j <= 0:
        return []
    usable = [
        position
        for position, offer in enumerate(pool_P)
        if informative(offer.rewards_G) and (recipe.max_age is None or offer.age <= recipe.max_age)
    ]
    if recipe.choice == "uniform":
        return rng.sample(usable, min(j, len(usable)))
    return _peers_first(pool_P, usable, j, rng) + _people(recipe, pool_P, rng)


def _people(recipe: Recipe, pool_P: Sequence[PeerOffer], rng: Random) -> list[int]:
    """Chooses at most MAX_PEOPLE groups of people, in addition to the `j`; all people are equally likely, and
    doubted ones are left out in most rounds."""
    fresh = [
        position
        for position, offer in enumerate(pool_P)
        if lone(offer.rewards_G) and (recipe.max_age is None or offer.age <= recipe.max_age)
    ]
    if not fresh:
        return []
    names = sorted({pool_P[position].peer for position in fresh})
    asked = rng.sample(names, min(MAX_PEOPLE, len(names)))
    chosen = [rng.choice([at for at in fresh if pool_P[at].peer == name]) for name in asked]
    return [at for at in chosen if _considered(pool_P[at].trust, rng)]


def _peers_first(pool_P: Sequence[PeerOffer], usable: list[int], j: int, rng: Random) -> list[int]:
    by_peer: dict[str, list[int]] = {}
    for position in usable:
        by_peer.setdefault(pool_P[position].peer, []).append(position)
    limit = max(1, j // 4) if len(by_peer) > FEW_PEERS else j
    trust = {peer: pool_P[positions[0]].trust for peer, positions in by_peer.items()}
    # sorted: the order of arrival must not steer the seeded draw
    left = {peer: limit for peer in sorted(by_peer) if _considered(trust[peer], rng)}
    chosen: list[int] = []
    while left and len(chosen) < j:
        peer = _drawn(list(left), trust, rng)
        positions = by_peer[peer]
        chosen.append(positions.pop(rng.randrange(len(positions))))
        left[peer] -= 1
        if not positions or not left[peer]:
            del left[peer]
    return chosen


def _considered(trust: float, rng: Random) -> bool:
    return trust >= DOUBTED_TRUST or rng.random() < SECOND_CHANCE * trust


def _drawn(peers: list[str], trust: dict[str, float], rng: Random) -> str:
    if len({trust[peer] for peer in peers}) == 1:
        return rng.choice(peers)
    return rng.choices(peers, [trust[peer] for peer in peers])[0]
