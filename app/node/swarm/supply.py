"""Peers' groups for the next rounds: fetched a few at a time, checked, ready before they are wanted."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from random import Random
from typing import cast

import msgspec

from app.common.retry import wait_s
from app.learning.choosing import Records
from app.node.record.snapshot import Peer
from app.node.round.peers import JudgedGroup, OwnGroup, PeerGroup
from app.sapo.groups import lone
from app.sapo.mixing import PeerOffer
from app.sapo.questions import Coordinates
from app.sapo.recipes import Recipe
from app.swarm.client.client import Client
from app.swarm.client.reporting import Complaint
from app.swarm.intake.intake import Intake
from app.swarm.intake.pool import Checked, Pool
from app.swarm.intake.reasons import IntakeReason
from app.swarm.wire.limits import ARCHIVED_S
from app.swarm.wire.protocol import Wanted

PULL_S, AGAIN_S = 6.0, 2.0
"""Between two samples: on the average, because relays allow twelve a minute, and at least, because a few may
come at once."""
SOON_S, IDLE_S = 1.0, 15.0
"""After a sample that brought nothing: soon at first, doubling, as a swarm that has just begun fills fast."""
SHORTEST_ROUND_S = 30.0
"""Groups age in rounds of the node that takes them. A shorter round counts as this long, so that a fast node
finds something too; a slow node's rounds count as they are."""
MOST_AGE_S, LEAST_AGE_S = 1800, 120
MOST = 64
_PEERS = 500
_FAMILIES = 6
"""Remembered of a peer."""
_MET = 8192
_LEAST_ACCEPTED = 0.5
"""Least share that is taken to pass the check: where all fail it, twice as many are fetched and no more."""


def wanted(external: int, ready: int, round_s: float, accepted: float) -> int:
    """How many groups to ask for: what the rounds until the next sample will take, less what is ready, and more
    where some of them fail the check.

    >>> wanted(8, 0, 60.0, 1.0), wanted(8, 5, 60.0, 0.75), wanted(8, 8, 60.0, 1.0)
    (8, 4, 0)
    >>> wanted(8, 0, 2.0, 1.0), wanted(8, 0, 2.0, 0.1)
    (24, 48)
    """
    rounds = math.ceil(PULL_S / max(round_s, 0.5))
    missing = external * rounds - ready
    return max(0, min(MOST, math.ceil(missing / max(accepted, _LEAST_ACCEPTED))))


def oldest_s(max_age: int | None, round_s: float) -> int:
    """Seconds beyond which a group is of no use to this node's next round.

    >>> oldest_s(4, 2.0), oldest_s(4, 100.0), oldest_s(4, 9000.0), oldest_s(None, 2.0)
    (120, 400, 1800, 1800)
    """
    if max_age is None:
        return MOST_AGE_S
    return int(max(LEAST_AGE_S, min(MOST_AGE_S, max_age * max(round_s, SHORTEST_ROUND_S))))


class Supply:
    """`run` it in a task. A group is out from `take` until `settle` or `give_back`, and is used once."""

    def __init__(
        self,
        client: Client,
        open_intake: Callable[[str], Intake],
        recipe: Recipe,
        external: int,
        families: Sequence[str],
        used: set[Coordinates],
        people: Callable[[], bool] = lambda: True,
    ) -> None:
        """`open_intake` makes the check for a swarm, whose id is known with the first connection. `used` are
        questions of groups that were trained on before this start; of later ones the check knows the ids.
        `people`: whether the owner likes to learn from people's answers."""
        self._people = people
        self._client, self._open_intake, self._pool = client, open_intake, Pool()
        self._recipe, self._external, self.families = recipe, external, tuple(families)
        self._used = used
        self._met: OrderedDict[Coordinates, None] = OrderedDict()
        self._returned: list[Checked] = []
        self._out: list[Checked] = []
        self._records = Records()
        self._suspects: set[str] = set()
        self._wake, self._settled = asyncio.Event(), asyncio.Event()
        self._passed: deque[bool] = deque([True] * 16, maxlen=64)
        self._intake: Intake | None = None
        self.round_s = SHORTEST_ROUND_S
        self.resting = False
        """Nothing is fetched while no rounds are played."""
        self._solved: OrderedDict[tuple[str, int], bool] = OrderedDict()
        """Families and levels, the latest last: whether the latest own group there had a right answer."""
        self.received = self.accepted = self.recalled = 0
        self.refused: Counter[str] = Counter()
        self.taken = self.taken_last = 0
        self.sources: set[str] = set()
        self.peers: OrderedDict[str, Peer] = OrderedDict()
        """By key, the latest seen last."""

    @property
    def ready(self) -> int:
        """Groups that the next round may choose from. Those of doubted peers are none, nor are people's, of
        which a round takes one on top: they would lie there and keep others' from being fetched."""
        oldest = math.inf if self._recipe.max_age is None else self._recipe.max_age
        offers = (offer for offer in self._offers() if not lone(offer.rewards_G))
        fresh = (offer.peer for offer in offers if offer.age <= oldest)
        return sum(not self._records.doubts(self._recipe, peer) for peer in fresh)

    async def run(self) -> None:
        """Fetches and checks for ever. Raises SandboxError when nothing can be scored any more."""
        empty = 0
        while True:
            self._wake.clear()
            swarm, fetched = self._client.status.swarm, None
            if swarm is not None and self._client.status.connected and not self.resting:
                fetched = await self._fetch(swarm)
            if fetched is None:  # offline, resting, or enough is ready: until a round takes some
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await self._wake.wait()
                continue
            empty = 0 if fetched else empty + 1
            await self._pause(AGAIN_S if fetched else wait_s(empty, first_s=SOON_S, longest_s=IDLE_S))

    async def _pause(self, seconds: float) -> None:
        """So long, or until a round is over, after which others may have something too; SOON_S at least."""
        self._settled.clear()
        await asyncio.sleep(min(seconds, SOON_S))
        if seconds > SOON_S:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds - SOON_S):
                    await self._settled.wait()

    async def _fetch(self, swarm: str) -> int | None:
        """One sample, checked; how many came. None where none was asked for or could be had."""
        share = sum(self._passed) / len(self._passed)
        k = wanted(self._external, self.ready, self.round_s, share)
        batch = await self._client.sample(k, self.families, self._oldest_s()) if k else None
        if batch is None:
            return None
        archived = None
        if not batch.eligible:  # nobody else is here
            archived = await self._client.recall(k, self._levels())
        if archived is not None:
            batch = archived
            self.recalled += len(batch.items)
        if self._intake is None:
            self._intake = self._open_intake(swarm)
        oldest = None if archived is None else ARCHIVED_S
        sifted = await asyncio.to_thread(self._intake.sift, batch.items, self._client.now_ms, oldest)
        self.received += len(batch.items)
        fresh = [one for one in sifted.checked if self._new(one.scored.group.coordinates)]
        self.accepted += len(fresh)
        for checked in fresh:
            if archived is not None:  # it is as old as it was left; here it is new
                checked = msgspec.structs.replace(checked, since_ms=self._client.now_ms)
            self._pool.add(checked, self._client.now_ms)
            self._passed.append(True)
            self._meet(checked)
        refused = Counter({reason.value: number for reason, number in sifted.refused.items()})
        refused[IntakeReason.SEEN.value] += len(sifted.checked) - len(fresh)
        for reason, number in (+refused).items():
            total = self.refused.pop(reason, 0) + number
            self.refused[reason] = total  # at the end: the latest reason is the last
            self._passed.extend([False] * number)
        for complaint, ids in sifted.reports.items():
            self._client.report(ids, cast(Complaint, complaint))
        return len(batch.items)

    def _levels(self) -> list[Wanted]:
        """What to ask the archive for: where the own groups failed lately, otherwise where they were at all."""
        failed = [level for level, solved in self._solved.items() if not solved]
        return [
            Wanted(family=family, level=level)
            for family, level in failed or self._solved
            if family in self.families
        ]

    def _new(self, question: Coordinates) -> bool:
        """Whether no group to this question was here before. Nodes draw their questions by their keys, so a
        second one is a copy, however much its words were changed."""
        if question in self._used or question in self._met:
            return False
        self._met[question] = None
        if len(self._met) > _MET:
            self._met.popitem(last=False)
        return True

    def _meet(self, checked: Checked) -> None:
        before = self.peers.pop(checked.peer, None)
        self.peers[checked.peer] = Peer(
            name=checked.name,
            model=checked.scored.group.model,
            seen_at=checked.created_ms / 1000,
            groups=(before.groups if before else 0) + 1,
            families=_families(before, checked.scored.group.coordinates.family),
            since=before.since if before else checked.created_ms / 1000,
        )
        if len(self.peers) > _PEERS:
            self.peers.popitem(last=False)

    def take(self, recipe: Recipe, most: int, rng: Random) -> list[PeerGroup]:
        offers, returned = self._offers(), self._returned
        chosen = self._records.choose(recipe, offers, most, rng)
        if not self._people():
            chosen = [at for at in chosen if not lone(offers[at].rewards_G)]
        of_pool = len(offers) - len(returned)
        pooled = iter(self._pool.take([at for at in chosen if at < of_pool]))
        self._out = [next(pooled) if at < of_pool else returned[at - of_pool] for at in chosen]
        self._returned = [one for one in returned if one not in self._out]
        self._wake.set()
        return [PeerGroup(peer=one.name, question=one.text, scored=one.scored) for one in self._out]

    def give_back(self, blamed: bool = True) -> None:
        """The round was lost; when `blamed`, because the trainer died over these. Once may be chance; a group
        that was there twice is not given a third chance to be the reason."""
        self._returned += [one for one in self._out if not blamed or one.id not in self._suspects]
        if blamed:
            self._suspects.update(one.id for one in self._out)
        self._out = []

    def settle(
        self, round_s: float, judged_P: Sequence[JudgedGroup] = (), own_P: Sequence[OwnGroup] = ()
    ) -> list[str]:
        """The ids of the groups that were learned from."""
        for own in own_P:
            where = own.question.coordinates
            self._solved.pop((where.family, where.level), None)
            self._solved[where.family, where.level] = any(own.scored.rewards_G)
        while len(self._solved) > MOST:
            self._solved.popitem(last=False)
        out, learned = {id(one.scored): one for one in self._out}, []
        for judged in judged_P:
            if one := out.get(id(judged.group.scored)):  # not the owner's own answer
                self._records.judge(one.peer, judged.taken, judged.kept_out)
                learned += [one.id] * bool(judged.taken)
        self.taken += len(self._out)
        self.taken_last = len(self._out)
        self.sources.update(one.peer for one in self._out)
        self._suspects.difference_update(one.id for one in self._out)
        self._out = []
        self.round_s = round_s
        self._settled.set()
        return learned

    def _offers(self) -> list[PeerOffer]:
        """The pool's, and behind them what was given back."""
        now_ms = self._client.now_ms
        round_ms = 1000 * max(self.round_s, SHORTEST_ROUND_S)
        returned = [
            PeerOffer(
                peer=one.peer,
                age=max(0, int((now_ms - one.counts_ms) / round_ms)),
                rewards_G=one.scored.rewards_G,
            )
            for one in self._returned
        ]
        return self._pool.offers(now_ms, self.round_s) + returned

    def _oldest_s(self) -> int:
        return oldest_s(self._recipe.max_age, self.round_s)


def _families(before: Peer | None, family: str) -> tuple[str, ...]:
    """The latest last."""
    known = before.families if before else ()
    return (*(one for one in known if one != family), family)[-_FAMILIES:]
