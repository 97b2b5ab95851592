"""Peers' groups from the learner's side: which J of them a round takes in addition to its own, and the track
record of each author.

Intake makes a `GroupRecord`, the swarm's buffer stores it, and a round takes it and reports in a `JudgedGroup`
how useful it was. A group written by a person has one right
answer and nothing to contrast it with, so the learner is asked the same question: if all its own answers are
wrong, they complete the group.

`choose` looks at authors, ages and rewards, neither at answers nor tokens, and returns positions. Too few
groups give fewer than J.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import msgspec

from app.sapo import defences
from app.sapo.defences import PeerRecord
from app.sapo.groups import GroupRecord, is_single_right_answer
from app.sapo.recipes import Recipe

_PEERS = 500
"""Maximum number of authors remembered; those judged longest ago are forgotten first."""
STANDING_ANSWERS, STANDING_TRUST = 16.0, 0.8
"""An author has standing with at least this many accepted right answers and this much trust."""
NEW_AUTHOR_ANSWERS = 8.0
"""All new authors share one record, which starts with this many right answers, half of them accepted. It takes
five bad authors in a row, with no good one between them, before new authors are doubted
(DOUBTED_TRUST)."""


FEW_PEERS = 4
"""With more peers than this in the pool, no peer provides more than a quarter of J (`peers first` only)."""
MAX_HUMAN_GROUPS = 1
"""Maximum groups of people (one right answer each) in a round; each costs one sampled question, to find out
whether there is anything to learn."""
DOUBTED_TRUST = 1 / 3
"""A peer with less trust than this is doubted: it is usually not used to fill up a round with fewer than J
groups."""
SECOND_CHANCE = 1 / 4
"""A doubted peer is still considered in a round with this factor times its trust as the probability, so that
wrong doubts are corrected."""


@dataclass(frozen=True)
class JudgedGroup:
    """The outcome of a peer group: how many of its right answers were trained on (`taken`), and how many were
    rejected (`kept_out`)."""

    group: GroupRecord
    taken: int
    kept_out: int


class PeerRecords:
    """Track record of each peer, by name: how useful its groups were to this learner. All new peers share one
    record, because keys cost nothing: an attacker who changes keys after every few groups is judged by the
    shared record."""

    def __init__(self) -> None:
        self._records: OrderedDict[str, PeerRecord] = OrderedDict()
        self._new = PeerRecord(taken=NEW_AUTHOR_ANSWERS / 2, kept_out=NEW_AUTHOR_ANSWERS / 2)

    def choose(
        self, recipe: Recipe, pool_P: Sequence[GroupRecord], ages_P: Sequence[int], j: int, rng: Random
    ) -> list[int]:
        """Chooses as the function `choose` does. If the recipe uses records, groups are weighted by their
        author's trust."""
        return choose(recipe, pool_P, ages_P, j, rng, self._trust if recipe.by_record else _equal)

    def doubts(self, recipe: Recipe, peer: str) -> bool:
        """Whether the recipe leaves this peer out in most rounds because of its record."""
        return recipe.by_record and self._trust(peer) < DOUBTED_TRUST

    def has_standing(self, peer: str) -> bool:
        """Whether the peer has standing: at least STANDING_ANSWERS of its right answers were accepted, and few
        rejected."""
        record = self._records.get(peer, PeerRecord())
        return record.taken >= STANDING_ANSWERS and self._trust(peer) >= STANDING_TRUST

    def record_use(self, peer: str, taken: int, kept_out: int) -> None:
        """Updates a peer's record after one of its groups, from how many of its right answers were accepted and
        rejected."""
        before = self._records.pop(peer, None)
        if before is None and taken + kept_out:
            share = taken / (taken + kept_out)
            self._new = defences.update_record(self._new, share, 1.0 - share)
        self._records[peer] = defences.update_record(before or PeerRecord(), taken, kept_out)
        if len(self._records) > _PEERS:
            self._records.popitem(last=False)

    def _trust(self, peer: str) -> float:
        return defences.trust(self._records.get(peer, PeerRecord()), defences.trust(self._new))


def _equal(key: str) -> float:
    return 1.0


def choose(
    recipe: Recipe,
    pool_P: Sequence[GroupRecord],
    ages_P: Sequence[int],
    j: int,
    rng: Random,
    trust: Callable[[str], float] = _equal,
) -> list[int]:
    """Chooses at most `j` distinct positions of `pool_P`, informative groups only, in the order of choice.
    `ages_P`: the groups' ages in this node's rounds; `trust`: the weight with which an author, by its key, is
    chosen (`peers first`).

    `uniform` takes every informative group with equal probability (SAPO, arXiv 2509.08721, section 5). `peers
    first` draws a peer in proportion to its trust and then one of its groups, so that publishing more gives no
    more influence. It drops groups older than the recipe's `max_age`, and takes at most a quarter of `j` (at
    least one group) from one peer if more than FEW_PEERS peers have usable groups. Doubted peers are left out
    in most rounds, even if fewer than `j` groups are chosen then. With `peers first` a person's group may be
    added.
    """
    if j <= 0:
        return []
    fresh = [at for at, age in enumerate(ages_P) if recipe.max_age is None or age <= recipe.max_age]
    usable = [at for at in fresh if pool_P[at].informative]
    if recipe.choice == "uniform":
        return rng.sample(usable, min(j, len(usable)))
    return _peers_first(pool_P, usable, j, rng, trust) + _people(pool_P, fresh, rng, trust)


def _people(
    pool_P: Sequence[GroupRecord], fresh: Sequence[int], rng: Random, trust: Callable[[str], float]
) -> list[int]:
    """Chooses at most MAX_HUMAN_GROUPS groups of people, in addition to the `j`; all people are equally likely,
    and doubted ones are left out in most rounds."""
    fresh = [at for at in fresh if is_single_right_answer(pool_P[at].rewards_G)]
    if not fresh:
        return []
    names = sorted({pool_P[at].key for at in fresh})
    asked = rng.sample(names, min(MAX_HUMAN_GROUPS, len(names)))
    chosen = [rng.choice([at for at in fresh if pool_P[at].key == name]) for name in asked]
    return [at for at in chosen if _considered(trust(pool_P[at].key), rng)]


def _peers_first(
    pool_P: Sequence[GroupRecord], usable: list[int], j: int, rng: Random, trust: Callable[[str], float]
) -> list[int]:
    by_peer: dict[str, list[int]] = {}
    for position in usable:
        by_peer.setdefault(pool_P[position].key, []).append(position)
    limit = max(1, j // 4) if len(by_peer) > FEW_PEERS else j
    trusts = {peer: trust(peer) for peer in by_peer}
    # sorted: the order of arrival must not steer the seeded draw
    left = {peer: limit for peer in sorted(by_peer) if _considered(trusts[peer], rng)}
    chosen: list[int] = []
    while left and len(chosen) < j:
        peer = _drawn(list(left), trusts, rng)
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


def with_own_wrong_answers(person: GroupRecord, own: GroupRecord) -> GroupRecord | None:
    """Returns a person's answer combined with the learner's own wrong answers to the same question. None if the
    learner solved it, since there is nothing to learn then. Raises ValueError if the two groups answer
    different questions."""
    if person.coordinates != own.coordinates:
        raise ValueError("Both must answer the same question.")
    if any(own.rewards_G):
        return None
    return msgspec.structs.replace(
        person,
        completions_G=person.completions_G + own.completions_G,
        finished_G=person.finished_G + own.finished_G,
        scores_G=person.scores_G + own.scores_G,
        rewards_G=person.rewards_G + own.rewards_G,
    )
