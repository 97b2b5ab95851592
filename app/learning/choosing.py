"""Peers' groups from the learner's side: their type, which of them a round takes, and the track record of each
author.

A checked group is a `PeerGroup` from intake to optimiser: intake creates it, the swarm's buffer stores it, and
a round takes it and reports in a `JudgedGroup` how useful it was. A group written by a person has one right
answer and nothing to contrast it with, so the learner is asked the same question: if all its own answers are
wrong, they complete the group.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import msgspec

from app.sapo import defences, mixing
from app.sapo.defences import PeerRecord
from app.sapo.groups import ScoredGroup
from app.sapo.mixing import PeerOffer
from app.sapo.recipes import Recipe

__all__ = ["JudgedGroup", "PeerGroup", "PeerOffer", "PeerRecords", "whole_group"]

_PEERS = 500
"""Maximum number of authors remembered; those judged longest ago are forgotten first."""
STANDING, STANDS = 16.0, 0.8
"""An author has standing with at least this many accepted right answers and this much trust."""
NEW_AUTHOR_ANSWERS = 8.0
"""All new authors share one record, which starts with this many right answers, half of them accepted. It takes
five bad authors in a row, with no good one between them, before new authors are doubted
(`mixing.DOUBTED_TRUST`)."""


class PeerGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A peer's group after this node has regenerated the question and scored the answers itself.

    `peer` is the author's name, `question` the text that this node made. The other fields are for groups from a
    relay: `id` of the envelope, `key` of the author in hex, `created_ms` as the author claims (Unix ms), and
    `since_ms`, from which its age counts if that is later (for a group from the archive: when it arrived)."""

    peer: str
    question: str
    scored: ScoredGroup
    id: str = ""
    key: str = ""
    created_ms: int = 0
    since_ms: int = 0

    @property
    def counts_ms(self) -> int:
        """Unix milliseconds from which the group's age is measured."""
        return max(self.created_ms, self.since_ms)


@dataclass(frozen=True)
class JudgedGroup:
    """How many of a peer group's right answers were trained on (`taken`), and how many were rejected
    (`kept_out`)."""

    group: PeerGroup
    taken: int
    kept_out: int


class PeerRecords:
    """Track record of each peer, by name: how useful its groups were to this learner. All new peers share one
    record, because keys cost nothing: an attacker who changes keys after every few groups is judged by the
    shared record."""

    def __init__(self) -> None:
        self._records: OrderedDict[str, PeerRecord] = OrderedDict()
        self._new = PeerRecord(taken=NEW_AUTHOR_ANSWERS / 2, kept_out=NEW_AUTHOR_ANSWERS / 2)

    def choose(self, recipe: Recipe, offers_P: Sequence[PeerOffer], j: int, rng: Random) -> list[int]:
        """Chooses at most `j` of the offers and returns their positions in `offers_P`. If the recipe uses
        records, each offer is weighted by its peer's trust."""
        if recipe.by_record:
            offers_P = [msgspec.structs.replace(offer, trust=self._trust(offer.peer)) for offer in offers_P]
        return mixing.choose(recipe, offers_P, j, rng)

    def doubts(self, recipe: Recipe, peer: str) -> bool:
        """Whether the recipe leaves this peer out in most rounds because of its record."""
        return recipe.by_record and self._trust(peer) < mixing.DOUBTED_TRUST

    def stands(self, peer: str) -> bool:
        """Whether the peer has standing: at least STANDING of its right answers were accepted, and few
        rejected."""
        record = self._records.get(peer, PeerRecord())
        return record.taken >= STANDING and self._trust(peer) >= STANDS

    def judge(self, peer: str, taken: int, kept_out: int) -> None:
        """Updates a peer's record after one of its groups, from how many of its right answers were accepted and
        rejected."""
        before = self._records.pop(peer, None)
        if before is None and taken + kept_out:
            share = taken / (taken + kept_out)
            self._new = defences.remembered(self._new, share, 1.0 - share)
        self._records[peer] = defences.remembered(before or PeerRecord(), taken, kept_out)
        if len(self._records) > _PEERS:
            self._records.popitem(last=False)

    def _trust(self, peer: str) -> float:
        return defences.trust(self._records.get(peer, PeerRecord()), defences.trust(self._new))


def whole_group(person: ScoredGroup, own: ScoredGroup) -> ScoredGroup | None:
    """Returns a person's answer combined with the learner's own wrong answers to the same question. None if the
    learner solved it, since there is nothing to learn then. Raises ValueError if the two groups answer
    different questions."""
    if person.group.coordinates != own.group.coordinates:
        raise ValueError("Both must answer the same question.")
    if any(own.rewards_G):
        return None
    group = msgspec.structs.replace(
        person.group,
        completions_G=person.group.completions_G + own.group.completions_G,
        finished_G=person.group.finished_G + own.group.finished_G,
    )
    return ScoredGroup(
        group=group, scores_G=person.scores_G + own.scores_G, rewards_G=person.rewards_G + own.rewards_G
    )
