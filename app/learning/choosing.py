"""Which peers' groups a round takes, and what becomes of their authors' records."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from random import Random

import msgspec

from app.sapo import defences, mixing
from app.sapo.defences import PeerRecord
from app.sapo.mixing import PeerOffer
from app.sapo.recipes import Recipe

__all__ = ["PeerOffer", "Records"]

_PEERS = 500
"""Authors remembered; those judged longest ago are forgotten first."""
NEW = 8.0
"""New authors are believed in as if so many had been met, and half of what they gave had been taken: five bad
ones in a row, and none good, are needed before new ones are doubted (`mixing.DOUBTED`)."""


class Records:
    """How a learner fared with each peer, by the name that its offers carry, and with all new ones together: a
    key costs nothing, so anyone who takes another one after every few groups is judged by that."""

    def __init__(self) -> None:
        self._records: OrderedDict[str, PeerRecord] = OrderedDict()
        self._new = PeerRecord(taken=NEW / 2, kept_out=NEW / 2)

    def choose(self, recipe: Recipe, pool_P: Sequence[PeerOffer], j: int, rng: Random) -> list[int]:
        """At most `j` positions of the pool; where the recipe goes by records, each peer with its trust."""
        if recipe.by_record:
            pool_P = [msgspec.structs.replace(offer, trust=self._trust(offer.peer)) for offer in pool_P]
        return mixing.choose(recipe, pool_P, j, rng)

    def doubts(self, recipe: Recipe, peer: str) -> bool:
        """Whether a peer is left out in most rounds."""
        return recipe.by_record and self._trust(peer) < mixing.DOUBTED

    def judge(self, peer: str, taken: int, kept_out: int) -> None:
        """After one of a peer's groups: so many of its right answers were taken, so many kept out."""
        before = self._records.pop(peer, None)
        if before is None and taken + kept_out:
            share = taken / (taken + kept_out)
            self._new = defences.remembered(self._new, share, 1.0 - share)
        self._records[peer] = defences.remembered(before or PeerRecord(), taken, kept_out)
        if len(self._records) > _PEERS:
            self._records.popitem(last=False)

    def _trust(self, peer: str) -> float:
        return defences.trust(self._records.get(peer, PeerRecord()), defences.trust(self._new))
