"""Quotas: how much one key, and all keys at one address, may do.

A token bucket is kept as a single number, the moment at which it will be full again (the generic cell rate
algorithm of ATM, ITU-T I.371): taking n tokens moves that moment n / rate later, and it may lie at most burst /
rate ahead. A full bucket needs no number at all, so memory grows with what was used lately, and never beyond a
bound.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from math import inf

import msgspec

from app.relay.window import Clock


class Rate(msgspec.Struct, frozen=True):
    """Tokens a minute, and how many can be saved up. Raises ValueError unless both are positive."""

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
        """Seconds from empty to full."""
        return self.burst / self.per_s


PER_KEY: Mapping[str, Rate] = {
    "publish": Rate(30, 60),
    "sample": Rate(12, 12),
    "bytes": Rate(5_000_000, 5_000_000),
}
PER_ADDRESS: Mapping[str, Rate] = {
    **{kind: Rate(16 * rate.per_min, 16 * rate.burst) for kind, rate in PER_KEY.items()},
    "connect": Rate(120, 64),
    "new-key": Rate(10 / 60, 10),
}
"""An address is a household, a school or an attacker's network: room for sixteen busy keys, ten new ones an
hour."""


class Buckets:
    """One bucket of one rate for each source, full until first used. At most `sources` are remembered; beyond
    that the one unused for longest is taken to be full."""

    __slots__ = ("_depth_s", "_full_at", "_per_s", "_sources", "rate")

    def __init__(self, rate: Rate, sources: int) -> None:
        self.rate = rate
        self._per_s, self._depth_s = rate.per_s, rate.depth_s  # read at every message
        self._sources = sources
        self._full_at: OrderedDict[bytes | str, float] = OrderedDict()

    def wait(self, source: bytes | str, amount: float, now: float) -> float:
        """Seconds until `amount` tokens will be there, 0 if they are; infinite for more than the bucket holds.

        >>> buckets = Buckets(Rate(60, 10), sources=100)
        >>> buckets.take("ann", 10, now=0.0), buckets.wait("ann", 3, now=1.0), buckets.wait("ann", 11, now=1.0)
        (None, 2.0, inf)
        """
        if amount > self.rate.burst:
            return inf
        full_at = self._full_at.get(source, now)
        if full_at < now:
            full_at = now
        wait = full_at + amount / self._per_s - now - self._depth_s
        return wait if wait > 0.0 else 0.0

    def take(self, source: bytes | str, amount: float, now: float) -> None:
        """Take tokens that `wait` has found to be there. What is not there is not owed: a bucket is never less
        than empty."""
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
        """Tokens there now, between 0 and the burst."""
        owed_s = self._full_at.get(source, now) - now
        left = (self._depth_s - owed_s if owed_s > 0.0 else self._depth_s) * self._per_s
        return left if left > 0.0 else 0.0

    def __len__(self) -> int:
        return len(self._full_at)


class Quotas:
    """The buckets of all kinds, for keys and for addresses. A kind bounded for only one of them is free for the
    other; one bounded for neither is a mistake and raises KeyError."""

    def __init__(
        self,
        clock: Clock,
        per_key: Mapping[str, Rate] = PER_KEY,
        per_address: Mapping[str, Rate] = PER_ADDRESS,
        *,
        sources: int = 50_000,
    ) -> None:
        self._clock = clock
        self._kinds = {
            kind: (
                Buckets(per_key[kind], sources) if kind in per_key else None,
                Buckets(per_address[kind], sources) if kind in per_address else None,
            )
            for kind in {*per_key, *per_address}
        }

    def take(self, kind: str, key: bytes | None, address: str, amount: float = 1.0) -> float:
        """Take `amount` from both buckets and return 0, or take nothing and return `retry_after` in seconds.
        `key` is None before a connection has said who it is."""
        if amount < 0:
            raise ValueError("Nothing is given back to a bucket.")
        of_key, of_address = self._kinds[kind]
        now, wait = self._clock(), 0.0
        if of_key is not None and key is not None:
            wait = of_key.wait(key, amount, now)
        if of_address is not None:
            wait = max(wait, of_address.wait(address, amount, now))
        if wait > 0:
            return wait
        if of_key is not None and key is not None:
            of_key.take(key, amount, now)
        if of_address is not None:
            of_address.take(address, amount, now)
        return 0.0

    def left(self, kind: str, key: bytes | None, address: str) -> float:
        """How much could be taken now."""
        of_key, of_address = self._kinds[kind]
        now, left = self._clock(), inf
        if of_key is not None and key is not None:
            left = of_key.left(key, now)
        if of_address is not None:
            left = min(left, of_address.left(address, now))
        return left
