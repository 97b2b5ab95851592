"""Fetches and checks peers' groups before rounds need them.

One loop, `PeerFetcher.run`, runs beside the rounds: it asks the relay for as many groups as the next rounds
will take, checks them (`app.swarm.intake.intake`, in a thread) and adds them to the `PeerBuffer`, from which
rounds take them. If nobody else is online it asks the relay's archive for tasks at which this node failed.
Under a separate byte quota it also fetches groups of families that the node does not train on yet; they wait in
the buffer, and rounds imitate their right answers (app.learning.imitation).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import cast

import msgspec

from app.common.rate import Bucket, backoff_s
from app.sapo.groups import GroupRecord
from app.sapo.recipes import Recipe
from app.swarm.client.client import Client
from app.swarm.client.receipts import Complaint
from app.swarm.client.status import Peer
from app.swarm.intake.buffer import MAX_WAITING_PER_FAMILY, SHORTEST_ROUND_S, PeerBuffer
from app.swarm.intake.intake import Intake
from app.swarm.intake.reasons import IntakeReason
from app.swarm.wire.limits import ARCHIVE_MAX_AGE_S, LARGE_GROUP_BYTES
from app.swarm.wire.protocol import SampleReply, WantedQuestions

SAMPLE_EVERY_S, MIN_BETWEEN_SAMPLES_S = 6.0, 2.0
"""Seconds between two samples: on average (relays allow twelve a minute), and at least (a few may come in a
burst)."""
FIRST_EMPTY_WAIT_S, LONGEST_EMPTY_WAIT_S = 1.0, 15.0
"""Seconds to wait after a sample without groups, at first and at most; doubling, because a new swarm fills
fast."""
CHECK_EVERY_S = 1.0
"""Seconds between two checks whether groups are needed."""
MAX_AGE_S, MIN_AGE_S = 1800, 120
MAX_GROUPS_PER_SAMPLE = 64
"""Maximum groups of one sample, and maximum levels of families remembered for the archive."""
IMITATED_GROUPS = 24
"""Maximum groups of one sample to imitate."""
_EMPTY_COSTS = 10_000
"""Bytes that an answer without groups takes from the quota below, so that a node does not ask forever."""
BYTES_PER_MIN, BYTES_AT_ONCE = 20_000.0, 1_200_000
"""Token bucket for bytes of fetched groups, rate and capacity; imitation gets what rounds leave. This is 2.4 MB
in the first hour and 1.2 MB in each further one; a group of short answers has about 700 bytes. A second bucket
of this size limits refused groups: when it is empty nothing more is fetched, because unusable groups would cost
traffic without end."""
IMITATED_FAMILIES = 8
"""Maximum families asked for at once to be imitated, those with most groups first: many answers of a few
families are worth more than few of many."""
_PEERS = 500
"""Maximum peers remembered for the views."""
_FAMILIES = 6
"""Maximum latest families remembered per peer, the latest last."""
_MIN_ACCEPTED = 0.5
"""Minimum share of fetched groups assumed to pass the checks: even if all fail, only twice as many are
fetched.
"""


def groups_to_request(external: int, ready: int, round_s: float, accepted: float) -> int:
    """Returns how many groups to ask for: as many as the rounds until the next request will take, minus those
    that are ready, plus some for those that will fail the checks.

    >>> groups_to_request(8, 0, 60.0, 1.0), groups_to_request(8, 5, 60.0, 0.75)
    (8, 4)
    >>> groups_to_request(8, 8, 60.0, 1.0)
    0
    >>> groups_to_request(8, 0, 2.0, 1.0), groups_to_request(8, 0, 2.0, 0.1)
    (24, 48)
    """
    rounds = math.ceil(SAMPLE_EVERY_S / max(round_s, 0.5))
    missing = external * rounds - ready
    return max(0, min(MAX_GROUPS_PER_SAMPLE, math.ceil(missing / max(accepted, _MIN_ACCEPTED))))


def max_group_age_s(max_age: int | None, round_s: float) -> int:
    """Returns the maximum age in seconds of a group that is still useful in this node's next round.

    >>> [max_group_age_s(4, round_s) for round_s in (2.0, 100.0, 9000.0)], max_group_age_s(None, 2.0)
    ([120, 400, 1800], 1800)
    """
    if max_age is None:
        return MAX_AGE_S
    return int(max(MIN_AGE_S, min(MAX_AGE_S, max_age * max(round_s, SHORTEST_ROUND_S))))


class PeerFetcher:
    """Fetches groups; call `run` in a task. Groups that pass the checks are added to `buffer`."""

    def __init__(
        self,
        client: Client,
        open_intake: Callable[[str], Intake],
        buffer: PeerBuffer,
        recipe: Recipe,
        external: int,
        families: Sequence[str],
    ) -> None:
        """`open_intake` creates the checks for a swarm, whose id is known after the first connection."""
        self._client, self._open_intake, self.buffer = client, open_intake, buffer
        self._recipe, self.external, self.families = recipe, external, tuple(families)
        self._round_over = asyncio.Event()
        self._passed: deque[bool] = deque([True] * 16, maxlen=64)
        self._intake: Intake | None = None
        self.imitated: tuple[str, ...] = ()
        """Families to ask for in addition to the active ones."""
        self._budget, self._refusable = (Bucket(BYTES_PER_MIN, BYTES_AT_ONCE, owes=True) for _ in range(2))
        self.resting = False
        """Whether fetching is paused because no rounds are played."""
        self.otherwise: Sequence[WantedQuestions] = ()
        """Tasks to ask the archive for while there is no own group yet."""
        self._solved: OrderedDict[tuple[str, int], bool] = OrderedDict()
        """By family and level, latest last: whether the latest own group had a right answer."""
        self.received = self.accepted = 0
        self.refused: Counter[str] = Counter()
        self.peers: OrderedDict[str, Peer] = OrderedDict()
        """Peers by key, the latest seen last."""

    async def run(self) -> None:
        """Fetches and checks until it is cancelled. Raises SandboxError if the scoring process cannot be
        started."""
        empty = 0
        while True:
            swarm, fetched = self._client.status.swarm, None
            if swarm is not None and self._client.status.connected and not self.resting:
                self._intake = self._intake or self._open_intake(swarm)
                await self._fetch_to_imitate()
                fetched = await self._fetch()
            if fetched is None:  # offline, resting, or enough is ready
                await asyncio.sleep(CHECK_EVERY_S)
                continue
            empty = 0 if fetched else empty + 1
            await self._pause(
                MIN_BETWEEN_SAMPLES_S
                if fetched
                else backoff_s(empty, first_s=FIRST_EMPTY_WAIT_S, longest_s=LONGEST_EMPTY_WAIT_S)
            )

    def on_round_over(self, own_P: Sequence[GroupRecord]) -> None:
        """Called with a round's own groups once it is saved. Records which levels were solved, and wakes the
        loop, because others may have published by then."""
        for own in own_P:
            where = own.coordinates
            self._solved.pop((where.family, where.level), None)
            self._solved[where.family, where.level] = any(own.rewards_G)
        while len(self._solved) > MAX_GROUPS_PER_SAMPLE:
            self._solved.popitem(last=False)
        self._round_over.set()

    async def _pause(self, seconds: float) -> None:
        """Waits `seconds`, or until a round is over, but at least FIRST_EMPTY_WAIT_S."""
        self._round_over.clear()
        await asyncio.sleep(min(seconds, FIRST_EMPTY_WAIT_S))
        if seconds > FIRST_EMPTY_WAIT_S:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds - FIRST_EMPTY_WAIT_S):
                    await self._round_over.wait()

    async def _fetch(self) -> int | None:
        """Fetches and checks one sample; returns how many groups arrived, None if none was requested or the
        relay did not answer."""
        buffer, share = self.buffer, sum(self._passed) / len(self._passed)
        k = groups_to_request(self.external, buffer.count_ready(self._recipe), buffer.round_s, share)
        if not k or not self.families or self._refusable.left(time.monotonic()) < 0:
            return None
        oldest = max_group_age_s(self._recipe.max_age, buffer.round_s)
        batch = await self._client.sample(k, self.families, oldest)
        if batch is None:
            return None
        archived = None
        if not batch.eligible:  # there are no other nodes
            archived = await self._client.recall(k, self._levels())
        fetched = len((archived or batch).items)
        self._budget.take(_bytes(archived or batch), time.monotonic())
        await self._take_in(archived or batch, archived is not None)
        return fetched

    async def _fetch_to_imitate(self) -> None:
        """Fetches one sample of families to imitate, and from the archive what online peers do not
        provide. Does nothing if none wait or the byte quota is used up."""
        families = self._short_of_groups()
        if not families or self._left() < IMITATED_GROUPS * LARGE_GROUP_BYTES:
            return
        batch = await self._client.sample(IMITATED_GROUPS, families, MAX_AGE_S)
        if batch is None:
            return
        await self._take_in(batch, archived=False)
        came, taken = len(batch.items), _bytes(batch)
        if 2 * came < IMITATED_GROUPS:  # no other nodes, or their groups are too old or were sent before
            tasks = [WantedQuestions(family=family, level=level) for level in (0, 1) for family in families]
            archived = await self._client.recall(IMITATED_GROUPS - came, tasks[:MAX_GROUPS_PER_SAMPLE])
            if archived is not None:
                await self._take_in(archived, archived=True)
                taken += _bytes(archived)
        self._budget.take(max(taken, _EMPTY_COSTS), time.monotonic())

    def _left(self) -> float:
        """Returns how many bytes may be fetched to imitate now."""
        now = time.monotonic()
        return min(self._budget.left(now), self._refusable.left(now))

    def _short_of_groups(self) -> tuple[str, ...]:
        """Returns families that lack groups which were never imitated: IMITATED_FAMILIES that have most of
        them, or all while fewer have any."""
        taught = self.buffer.times_taught
        counts = Counter(
            group.coordinates.family for group in self.buffer.waiting_groups() if group.id not in taught
        )
        short = [family for family in self.imitated if counts[family] < MAX_WAITING_PER_FAMILY]
        begun = sorted((one for one in short if counts[one]), key=lambda one: -counts[one])[:IMITATED_FAMILIES]
        return tuple(begun if len(begun) == IMITATED_FAMILIES else short)

    async def _take_in(self, batch: SampleReply, archived: bool) -> None:
        """Checks a batch and adds the groups that pass to the buffer."""
        assert self._intake is not None  # `run` opened it
        # The check makes questions and scores answers in the sandbox, which may take seconds.
        now_ms = self._client.now_ms
        sifted = await asyncio.to_thread(
            self._intake.check_batch, batch.items, now_ms, ARCHIVE_MAX_AGE_S if archived else None
        )
        self.received += len(batch.items)
        fresh = 0
        for group in sifted.checked:
            if archived:  # an archived group's age counts from its arrival here
                group = msgspec.structs.replace(group, since_ms=self._client.now_ms)
            if self.buffer.add(group):
                fresh += 1
                self._passed.append(True)
                self._note_peer(group)
        self.accepted += fresh
        bad = len(batch.items) - fresh
        self._refusable.take(_bytes(batch) * bad / max(1, len(batch.items)), time.monotonic())
        refused = Counter({reason.value: number for reason, number in sifted.refused.items()})
        refused[IntakeReason.SEEN.value] += len(sifted.checked) - fresh
        for reason, number in (+refused).items():
            total = self.refused.pop(reason, 0) + number
            self.refused[reason] = total  # at the end: the latest reason is the last
            self._passed.extend([False] * number)
        for complaint, ids in sifted.reports.items():
            self._client.report(ids, cast(Complaint, complaint))

    def _levels(self) -> list[WantedQuestions]:
        """Returns the tasks to ask the archive for: those at which the latest own group failed, or all if none
        failed."""
        failed = [level for level, solved in self._solved.items() if not solved]
        own = [
            WantedQuestions(family=family, level=level)
            for family, level in failed or self._solved
            if family in self.families
        ]
        return own or list(self.otherwise)

    def _note_peer(self, group: GroupRecord) -> None:
        before, family = self.peers.pop(group.key, None), group.coordinates.family
        known, made = before.families if before else (), group.created_ms / 1000
        self.peers[group.key] = Peer(
            name=group.author,
            model=group.model,
            seen_at=max(made, before.seen_at or 0.0) if before else made,  # an archive's come in any order
            groups=(before.groups if before else 0) + 1,
            families=(*(one for one in known if one != family), family)[-_FAMILIES:],
            since=before.since if before else made,
        )
        if len(self.peers) > _PEERS:
            self.peers.popitem(last=False)


def _bytes(batch: SampleReply) -> int:
    return sum(map(len, batch.items))
