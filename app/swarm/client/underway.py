"""Requests between a node and its relay, within the relay's limits: groups are stored in the outbox at any time
and sent as fast as the relay allows; samples wait for their answers. Uses no sockets."""

from __future__ import annotations

import asyncio
import binascii
import sqlite3
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count
from random import Random

import msgspec

from app.common.rate import Backoff, Bucket
from app.sapo.groups import GroupRecord
from app.sapo.questions import QUESTIONS_VERSION
from app.sapo.sets.question_set import is_owners_set
from app.swarm.client.clock import RelayClock
from app.swarm.client.outbox import Outbox, OutboxCounts
from app.swarm.identity.identity import Identity
from app.swarm.wire.body import Body, seal
from app.swarm.wire.frames import from_client, to_frame
from app.swarm.wire.limits import (
    BATCH_BYTES,
    FRAME_BYTES,
    KB,
    LARGE_GROUP_BYTES,
    MAX_SAMPLE_GROUPS,
    OPEN_PUBLISHES,
    OPEN_SAMPLES,
    RATE_SHARE,
    RECALLS_PER_MIN,
    Code,
    Quotas,
    Refused,
    RelayLimits,
    allowance,
)
from app.swarm.wire.protocol import Err, Ok, Pub, Recall, Sample, SampleReply, WantedQuestions

MAX_HELD = 64
"""Maximum groups held in memory while no swarm is known or the disk is full; above that the oldest is
dropped."""
ANSWER_S = 60.0
"""Seconds without an answer to a published group after which the node leaves the relay."""
_MAKING, _CATCHING_UP = 0.75, 0.25
"""Fractions of the relay's rate at which a node should create new groups, normally and while the outbox has a
backlog, so that the outbox empties."""
_BEHIND = 2 * OPEN_PUBLISHES
QUICK_S, SLOW_S = 4.0, 8.0
"""A full batch that comes within QUICK_S seconds doubles what the next may hold; one that takes SLOW_S, or does
not come, halves it. So a slow line is never busy with one batch until either end takes the other for dead."""
FEWEST_BYTES = 16 * KB
"""What a batch may hold at least: some twenty groups of short answers."""


class Publisher:
    """Sends one node's outbox. Every method that writes raises sqlite3.Error if the disk fails. `now` arguments
    are monotonic seconds."""

    def __init__(self, outbox: Outbox, identity: Identity, clock: RelayClock, rng: Random, now: float) -> None:
        self._outbox, self._identity, self._clock, self._rng = outbox, identity, clock, rng
        self._held: deque[tuple[GroupRecord, tuple[int, ...], int]] = deque(maxlen=MAX_HELD)
        self._open: dict[str, float] = {}
        self._most, self._zlib = OPEN_PUBLISHES, False
        self._pace = Backoff()
        self._quotas = Quotas()
        self._sending = allowance(self._quotas.publish_per_min, self._quotas.publish_burst)
        self._making = allowance(self._quotas.publish_per_min, self._quotas.publish_per_min)
        self.swarm: str | None = None
        self.counts: OutboxCounts = outbox.counts()

    @property
    def held(self) -> int:
        return len(self._held)

    def add(self, group: GroupRecord, rewards_G: Sequence[int], now: float) -> bool:
        """Stores a group until a relay has it. Returns False if it may not be published, for example if its
        rewards are all equal. If the disk fails, the group is held in memory and tried again with the next
        group or connection."""
        if is_owners_set(group.coordinates.family):
            return False
        self._making.take(1, now)
        kept = group, tuple(rewards_G), self._clock.now_ms()
        if self.swarm is None:
            self._held.append(kept)
            return True
        try:
            self.set_swarm(self.swarm)
            return self._add(self.swarm, *kept)
        except sqlite3.Error:
            self._held.append(kept)
            raise

    def groups_to_publish(self, now: float) -> int:
        """Returns how many groups to publish now: as many as the relay accepts, fewer while the outbox has a
        backlog."""
        share = _MAKING if self.counts.waiting <= _BEHIND else _CATCHING_UP
        left = self._making.left(now)
        self._making.set_rate(RATE_SHARE * share * self._quotas.publish_per_min, now)
        return int(left)

    def set_swarm(self, swarm: str) -> None:
        """Sets the swarm, then signs and stores the groups that were held until it was known."""
        self.swarm = swarm
        while self._held:
            self._add(swarm, *self._held[0])
            self._held.popleft()

    def on_connect(self, quotas: Quotas, open_publishes: int, zlib_agreed: bool, now: float) -> None:
        """Sets the limits of a new connection."""
        self._most, self._zlib = min(OPEN_PUBLISHES, max(1, open_publishes)), zlib_agreed
        if (quotas.publish_per_min, quotas.publish_burst) != (
            self._quotas.publish_per_min,
            self._quotas.publish_burst,
        ):
            self._sending = allowance(quotas.publish_per_min, quotas.publish_burst)
            self._making = allowance(quotas.publish_per_min, quotas.publish_per_min)
        self._quotas = quotas

    def due(self, now: float) -> Iterator[bytes]:
        """Yields the frames to send now, oldest first; each counts as in flight from then on."""
        while (
            self._pace.wait_s(now) == 0
            and len(self._open) < self._most
            and self._sending.left(now) >= 1
            and (taken := self._outbox.take(1))
        ):
            message = taken[0]
            pub = from_client(message.frame)
            assert isinstance(pub, Pub)
            if not self._current(pub):
                self._outbox.settle(message.id, Code.INVALID)
                self.counts = self._outbox.counts()
                continue
            self._open[message.id] = now
            self._sending.take(1, now)
            yield to_frame(_packed(pub)) if self._zlib else message.frame

    def settle(self, ok: Ok, now: float) -> None:
        if ok.id not in self._open:
            return
        final = self._outbox.settle(ok.id, ok.code)
        del self._open[ok.id]
        if final:
            self._pace = self._pace.after_success()
            self.counts = self._outbox.counts()
            return
        if self._pace.wait_s(now) == 0:  # sixteen refusals at once count as one failure
            self._pace = self._pace.after_failure(now, self._rng.random(), ok.retry_after_ms)
        if ok.code is Code.RATE_LIMITED:
            self._sending.drain(now)

    def on_disconnect(self) -> None:
        """Queues everything in flight to be sent again over the next connection."""
        self._outbox.on_disconnect()
        self._open.clear()

    def overdue(self, now: float) -> bool:
        return any(now - sent > ANSWER_S for sent in self._open.values())

    def wait_s(self, now: float) -> float:
        """Seconds until `due` may yield more, between 0.05 and 5."""
        return min(5.0, max(0.05, self._pace.wait_s(now), self._sending.wait_s(1, now)))

    def _current(self, pub: Pub) -> bool:
        """True if this relay can accept the message: it is of the current swarm and question version. `pub` is
        the message as stored in the outbox."""
        try:
            told = _told(pub.body)
        except msgspec.MsgspecError:
            return False
        return told.swarm == self.swarm and told.task.version == QUESTIONS_VERSION

    def _add(self, swarm: str, group: GroupRecord, rewards_G: Sequence[int], created_ms: int) -> bool:
        seed = self._identity.seed()
        try:
            self._outbox.add(
                self._identity.key,
                lambda key_seq: seal(Body.of(group, rewards_G, swarm, key_seq, created_ms), seed),
            )
        except Refused:
            return False
        self.counts = self._outbox.counts()
        return True


class _Task(msgspec.Struct):
    version: str


class _Told(msgspec.Struct):
    swarm: str
    task: _Task


_told = msgspec.json.Decoder(_Told).decode


def _packed(pub: Pub) -> Pub:
    """The message with a compressed body if that is smaller. Id and signature are over the uncompressed
    body."""
    packed = binascii.b2a_base64(zlib.compress(pub.body.encode()), newline=False).decode()
    return msgspec.structs.replace(pub, body=packed, enc="zlib") if len(packed) < len(pub.body) else pub


class SampleLimiter:
    """Limits samples to the relay's number in flight and rate per minute, and their bytes to what the line
    carries. `now` arguments are monotonic seconds."""

    def __init__(self, now: float) -> None:
        self._rids = count(1)
        self._open: dict[int, tuple[asyncio.Future[SampleReply | None], float]] = {}
        self._line = FRAME_BYTES  # bytes of a batch that this line can carry in time
        self._most, self._most_open = 0, 0
        self._quotas = Quotas()
        self._allowance = allowance(self._quotas.sample_per_min, self._quotas.sample_per_min)
        self._recalls = allowance(RECALLS_PER_MIN, RECALLS_PER_MIN)
        self._until = now

    def on_connect(self, quotas: Quotas, limits: RelayLimits, now: float) -> None:
        """Sets the limits of a new connection."""
        self._most, self._most_open = (
            min(MAX_SAMPLE_GROUPS, limits.sample),
            min(OPEN_SAMPLES, limits.open_samples),
        )
        if quotas.sample_per_min != self._quotas.sample_per_min:
            self._allowance = allowance(quotas.sample_per_min, quotas.sample_per_min)
        self._quotas = quotas

    def ask(
        self, k: int, families: Sequence[str] | None, max_age_s: int | None, now: float
    ) -> tuple[Sample, asyncio.Future[SampleReply | None]] | None:
        """Returns a sample request to send and the future of its answer; None if the relay would refuse it
        now."""
        k = min(k, self._most)
        if k < 1 or (begun := self._begin(self._allowance, now)) is None:
            return None
        rid, answer = begun
        wanted = None if families is None else tuple(families)
        return Sample(rid=rid, k=k, max_bytes=self._room(k), families=wanted, max_age_s=max_age_s), answer

    def recall(
        self, k: int, tasks: Sequence[WantedQuestions], now: float
    ) -> tuple[Recall, asyncio.Future[SampleReply | None]] | None:
        """Returns an archive request to send and the future of its answer; None if the relay would refuse it
        now."""
        k = min(k, self._most)
        if k < 1 or not tasks or (begun := self._begin(self._recalls, now)) is None:
            return None
        rid, answer = begun
        return Recall(rid=rid, k=k, max_bytes=self._room(k), tasks=tuple(tasks[:MAX_SAMPLE_GROUPS])), answer

    def _room(self, k: int) -> int:
        """Bytes to ask for with k groups: large ones on the average, so that traffic is not up to their
        authors, and no more than the line carries."""
        return min(self._line, max(FRAME_BYTES, k * LARGE_GROUP_BYTES))

    def _begin(self, rate: Bucket, now: float) -> tuple[int, asyncio.Future[SampleReply | None]] | None:
        """Takes one request from `rate`; None if it is used up, too many requests are open, or the relay asked
        to wait."""
        if len(self._open) >= self._most_open or now < self._until or rate.left(now) < 1:
            return None
        rate.take(1, now)
        rid = next(self._rids)
        answer: asyncio.Future[SampleReply | None] = asyncio.get_running_loop().create_future()
        self._open[rid] = answer, now
        return rid, answer

    def settle(self, batch: SampleReply, now: float) -> None:
        """Completes a request with its answer, which shows how fast the line is."""
        if (begun := self._close(batch.rid, batch)) is None:
            return
        if now - begun > SLOW_S:
            self._narrow()
        elif now - begun < QUICK_S and 2 * sum(map(len, batch.items)) > self._line:
            self._line = min(BATCH_BYTES, 2 * self._line)

    def give_up(self, rid: int) -> None:
        """Ends a request that no answer came to in time. Does nothing if it was completed before."""
        if self._close(rid, None) is not None:
            self._narrow()

    def _narrow(self) -> None:
        self._line = max(FEWEST_BYTES, self._line // 2)

    def _close(self, rid: int, batch: SampleReply | None) -> float | None:
        """Completes a request. Returns when it was made, None if it was completed before."""
        answer, begun = self._open.pop(rid, (None, None))
        if answer is not None and not answer.done():
            answer.set_result(batch)
        return begun

    def fail(self, err: Err, now: float) -> None:
        if err.rid is None or self._close(err.rid, None) is None:
            return
        if err.code is Code.RATE_LIMITED:
            self._allowance.drain(now)
        self._until = now + min(3600.0, (err.retry_after_ms or 0) / 1000)

    def on_disconnect(self) -> None:
        """Resolves waiting samples with None."""
        self._most = self._most_open = 0
        for rid in tuple(self._open):
            self.give_up(rid)
