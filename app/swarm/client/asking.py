"""Samples under way: each waits for its answer, and samples that the relay would refuse are not sent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count

from app.swarm.wire.limits import OPEN_SAMPLES, RECALLS_PER_MIN, SAMPLE, Code, Quotas, RelayLimits, allowance
from app.swarm.wire.protocol import BatchReply, Err, Recall, Sample, Wanted


class Samples:
    """Limits samples to what the relay allows at a time and in a minute. `now` is seconds of one monotonic
    clock."""

    def __init__(self, now: float) -> None:
        self._rids = count(1)
        self._open: dict[int, asyncio.Future[BatchReply | None]] = {}
        self._most, self._most_open = 0, 0
        self._quotas = Quotas()
        self._allowance = allowance(self._quotas.sample_per_min, self._quotas.sample_per_min)
        self._recalls = allowance(RECALLS_PER_MIN, RECALLS_PER_MIN)
        self._until = now

    def on_connect(self, quotas: Quotas, limits: RelayLimits, now: float) -> None:
        """A connection was made, with these limits."""
        self._most, self._most_open = min(SAMPLE, limits.sample), min(OPEN_SAMPLES, limits.open_samples)
        if quotas.sample_per_min != self._quotas.sample_per_min:
            self._allowance = allowance(quotas.sample_per_min, quotas.sample_per_min)
        self._quotas = quotas

    def ask(
        self, k: int, families: Sequence[str] | None, max_age_s: int | None, now: float
    ) -> tuple[Sample, asyncio.Future[BatchReply | None]] | None:
        """A sample to send, and the future of its answer; None when the relay would refuse it now."""
        k = min(k, self._most)
        if k < 1 or len(self._open) >= self._most_open or now < self._until or self._allowance.left(now) < 1:
            return None
        self._allowance.take(1, now)
        rid, answer = self._begin()
        wanted = None if families is None else tuple(families)
        return Sample(rid=rid, k=k, families=wanted, max_age_s=max_age_s), answer

    def recall(
        self, k: int, tasks: Sequence[Wanted], now: float
    ) -> tuple[Recall, asyncio.Future[BatchReply | None]] | None:
        """A recall from the archive and the future of its answer; None if the relay would refuse it now."""
        k = min(k, self._most)
        if k < 1 or not tasks or len(self._open) >= self._most_open or now < self._until:
            return None
        if self._recalls.left(now) < 1:
            return None
        self._recalls.take(1, now)
        rid, answer = self._begin()
        return Recall(rid=rid, k=k, tasks=tuple(tasks[:SAMPLE])), answer

    def _begin(self) -> tuple[int, asyncio.Future[BatchReply | None]]:
        rid = next(self._rids)
        answer: asyncio.Future[BatchReply | None] = asyncio.get_running_loop().create_future()
        self._open[rid] = answer
        return rid, answer

    def settle(self, batch: BatchReply) -> None:
        self._settle(batch.rid, batch)

    def fail(self, err: Err, now: float) -> None:
        if err.rid is None or not self._settle(err.rid, None):
            return
        if err.code is Code.RATE_LIMITED:
            self._allowance.empty(now)
        self._until = now + min(3600.0, (err.retry_after_ms or 0) / 1000)

    def on_disconnect(self) -> None:
        """The connection was lost; waiting samples get no answer."""
        self._most = self._most_open = 0
        for rid in tuple(self._open):
            self._settle(rid, None)

    def _settle(self, rid: int, batch: BatchReply | None) -> bool:
        answer = self._open.pop(rid, None)
        if answer is None:
            return False
        if not answer.done():
            answer.set_result(batch)
        return True

    def forget(self, sample: Sample | Recall) -> None:
        """Drops a sample whose caller no longer waits."""
        self._open.pop(sample.rid, None)
