"""Rate limits and retry waits: token buckets, transfer speed, and exponential back-off.

With many sources each bucket is stored as a single number, the time at which it will be full again (the generic
cell rate algorithm of ATM, ITU-T I.371): taking n tokens moves that time by n / rate, and it may lie at most
burst / rate ahead. A full bucket is not stored, so memory grows only with recently used buckets, and never
beyond a bound. `now` is in seconds of one clock."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import inf

import msgspec

WINDOW_S = 10.0
"""Seconds over which transfer speed is measured."""
_MIN = 1e-9
"""Minimum refill rate in tokens per minute, in place of 0."""


class Rate(msgspec.Struct, frozen=True):
    """Refill rate in tokens per minute, and capacity (`burst`) in tokens. Raises ValueError unless both are
    positive."""

    per_min: float
    burst: float

    def __post_init__(self) -> None:
        if not (0 < self.per_min < inf and 0 < self.burst < inf):
            raise ValueError("A rate and its burst are positive numbers.")

    @property
    def per_s(self) -> float:
        return self.per_min / 60

    @property
    def depth_s(self) -> float:
        """Seconds to refill from empty to full."""
        return self.burst / self.per_s


class Buckets:
    """Token buckets of one rate, one per source, each full until first used. At most `sources` are stored;
    beyond that the least recently used is dropped and counts as full."""

    __slots__ = ("_burst", "_depth_s", "_full_at", "_per_s", "_sources", "rate")

    def __init__(self, rate: Rate, sources: int) -> None:
        self.rate = rate
        self._per_s, self._depth_s, self._burst = rate.per_s, rate.depth_s, rate.burst  # read at every message
        self._sources = sources
        self._full_at: OrderedDict[bytes | str, float] = OrderedDict()

    def wait(self, source: bytes | str, amount: float, now: float) -> float:
        """Returns the seconds until `amount` tokens are available, 0 if they are; infinity for more than the
        burst.

        >>> buckets = Buckets(Rate(60, 10), sources=100)
        >>> buckets.take("ann", 10, now=0.0), buckets.wait("ann", 3, now=1.0), buckets.wait("ann", 11, now=1.0)
        (None, 2.0, inf)
        """
        if amount > self._burst:
            return inf
        full_at = self._full_at.get(source, now)
        wait = (full_at if full_at > now else now) + amount / self._per_s - now - self._depth_s
        return wait if wait > 0.0 else 0.0

    def take(self, source: bytes | str, amount: float, now: float) -> None:
        """Takes tokens after `wait` has returned 0. A bucket never falls below 0."""
        known, per_s, latest = self._full_at, self._per_s, now + self._depth_s
        full_at = known.get(source)
        if full_at is not None and full_at > now:
            full_at += amount / per_s
            known[source] = full_at if full_at < latest else latest
            known.move_to_end(source)
            return
        known[source] = min(now + amount / per_s, latest)
        known.move_to_end(source)
        while len(known) > self._sources or (known and known[next(iter(known))] <= now):
            known.popitem(last=False)

    def left(self, source: bytes | str, now: float) -> float:
        """Returns the tokens available at `now`, between 0 and the burst."""
        owed_s = self._full_at.get(source, now) - now
        left = (self._depth_s - owed_s if owed_s > 0.0 else self._depth_s) * self._per_s
        return left if left > 0.0 else 0.0

    def __len__(self) -> int:
        return len(self._full_at)


class Bucket:
    """A single token bucket, full at first. Setting the clock back neither costs nor adds tokens. With `owes`
    it may fall below 0, for costs that are known only afterwards.

    >>> bucket = Bucket(60, 4, owes=True)
    >>> bucket.take(7, now=0.0)
    >>> bucket.left(now=2.0), bucket.left(now=5.0)
    (-1.0, 2.0)
    """

    __slots__ = ("_at", "_least", "_tokens", "burst", "per_min")

    def __init__(self, per_min: float, burst: float, owes: bool = False) -> None:
        self.per_min, self.burst = max(per_min, _MIN), float(burst)
        self._least = -inf if owes else 0.0
        self._tokens, self._at = self.burst, -inf

    def left(self, now: float) -> float:
        """Returns the tokens available at `now`.

        >>> bucket = Bucket(60, 4)
        >>> bucket.take(4, now=0.0)
        >>> bucket.left(now=2.0), bucket.left(now=100.0), bucket.wait_s(9, now=2.0)
        (2.0, 4.0, 2.0)
        """
        gained = max(0.0, now - self._at) * self.per_min / 60
        return min(self.burst, self._tokens + gained)

    def take(self, amount: float, now: float) -> None:
        """Takes tokens; the bucket never falls below 0, unless it `owes`."""
        self._tokens = max(self._least, self.left(now) - amount)
        self._at = now

    def wait_s(self, amount: float, now: float) -> float:
        """Returns the seconds until `amount` tokens are available; for more than the burst, until the bucket is
        full."""
        return max(0.0, min(amount, self.burst) - self.left(now)) * 60 / self.per_min

    def drain(self, now: float) -> None:
        """Empties the bucket, for example after the relay refused a message by its own count."""
        self._tokens, self._at = 0.0, now

    def set_rate(self, per_min: float, now: float) -> None:
        """Changes the refill rate from `now` on; the tokens in the bucket stay."""
        self.take(0, now)
        self.per_min = max(per_min, _MIN)


class TransferSpeed:
    """Measures transfer speed in bytes per second over the last WINDOW_S seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()

    def record(self, have: int, total: int) -> tuple[float | None, float | None]:
        """Records that `have` of `total` bytes have arrived. Returns (bytes per second, seconds left); both
        None until they are known.

        >>> moments = iter([0.0, 0.1, 2.0, 4.0])
        >>> speed = TransferSpeed(lambda: next(moments))
        >>> [speed.record(have, 1000) for have in (0, 50, 100, 400)]
        [(None, None), (None, None), (50.0, 18.0), (100.0, 6.0)]
        """
        now = self._clock()
        self._seen.append((now, have))
        while len(self._seen) > 2 and now - self._seen[0][0] > WINDOW_S:
            self._seen.popleft()
        since, had = self._seen[0]
        if now - since <= 0.5 or have <= had:
            return None, None
        rate = (have - had) / (now - since)
        return rate, (total - have) / rate

    def restart(self) -> None:
        """Forgets earlier measurements, for example after a pause."""
        self._seen.clear()


SHORTEST_WAIT_S = 0.5
LONGEST_WAIT_S = 40.0
"""Maximum wait before reconnecting, in seconds: short enough for a node to be back within a minute of its relay
or network."""
JITTER_SHARE = 0.1
"""Maximum random part added to a relay's retry-after, so that its nodes do not all reconnect at the same
moment."""
_MAX_ASKED_S = 300.0  # a server that asks for more is treated as failed
_GROWS = 64
"""Failures after which a wait stops growing, so that the power does not overflow."""


def backoff_s(failures: int, *, first_s: float, longest_s: float, growth: float = 2.0) -> float:
    """Returns the seconds to wait after `failures` failures in a row (1 or more): exponential back-off from
    `first_s` to `longest_s`.

    >>> [backoff_s(n, first_s=0.5, longest_s=30.0, growth=4.0) for n in (1, 2, 3, 4, 10**9)]
    [0.5, 2.0, 8.0, 30.0, 30.0]
    """
    return min(longest_s, first_s * growth ** (min(max(failures, 1), _GROWS) - 1))


def reconnect_s(failures: int, chance: float, retry_after_ms: int | None = None) -> float:
    """Returns the seconds to wait before reconnecting to a relay after `failures` failures in a row, doubling
    from 0.5 to 40.

    Half of the wait is fixed and half is scaled by `chance`, a uniform draw from [0, 1). The result is never
    less than the relay's `retry_after_ms`, however long that is.

    >>> reconnect_s(1, 0.0), reconnect_s(1, 1.0), reconnect_s(4, 0.5), reconnect_s(99, 1.0)
    (0.5, 1.0, 6.0, 40.0)
    >>> reconnect_s(1, 1.0, 10_000)
    11.0
    """
    wait = backoff_s(failures, first_s=2 * SHORTEST_WAIT_S, longest_s=LONGEST_WAIT_S) * (0.5 + 0.5 * chance)
    told = (retry_after_ms or 0) / 1000
    return max(wait, told * (1 + JITTER_SHARE * chance))


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Number of consecutive failures, and the time until which to wait. `now` and `until` are in seconds of one
    monotonic clock."""

    failures: int = 0
    until: float = float("-inf")

    def after_failure(self, now: float, chance: float, retry_after_ms: int | None = None) -> Backoff:
        """Returns the state after one more failure. A longer wait that is already set still applies."""
        failures = self.failures + 1
        return Backoff(
            failures=failures, until=max(self.until, now + reconnect_s(failures, chance, retry_after_ms))
        )

    def after_success(self) -> Backoff:
        """Returns the state after a success: failures reset to 0; a wait that is already set still applies."""
        return Backoff(until=self.until)

    def wait_s(self, now: float) -> float:
        return max(0.0, self.until - now)


@dataclass(frozen=True)
class RetryLimit:
    """Limits on retrying a download: at most `attempts` in a row that bring no new byte, with growing pauses
    from `first_s` to `longest_s` seconds. An attempt ends after `silent_s` seconds without a byte."""

    attempts: int = 6
    first_s: float = 1.0
    longest_s: float = 30.0
    silent_s: float = 30.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def pause_s(self, failures: int, asked: float | None) -> float:
        """Returns the seconds to pause after `failures` failures; `asked` is the host's Retry-After in seconds,
        honoured up to 300.
        >>> [RetryLimit().pause_s(failures, None) for failures in (1, 3, 9)], RetryLimit().pause_s(1, 7.0)
        ([1.0, 4.0, 30.0], 7.0)
        """
        usual = backoff_s(failures, first_s=self.first_s, longest_s=self.longest_s)
        return usual if asked is None else max(usual, min(asked, _MAX_ASKED_S))
