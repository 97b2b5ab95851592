"""Quotas: how much one key, and all keys at one address, may do."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from app.common.rate import Buckets, Rate
from app.relay.access.origin import wider
from app.relay.store.window import Clock

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
HOMES = 4
"""So many times as much for a /48 of IPv6 together."""


class QuotaBuckets:
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
        whole = wider(address) if of_address is not None else None
        if of_address is not None:
            wait = max(wait, of_address.wait(address, amount, now))
            if whole is not None:
                wait = max(wait, of_address.wait(whole, amount / HOMES, now))
        if wait > 0:
            return wait
        if of_key is not None and key is not None:
            of_key.take(key, amount, now)
        if of_address is not None:
            of_address.take(address, amount, now)
            if whole is not None:
                of_address.take(whole, amount / HOMES, now)
        return 0.0

    def left(self, kind: str, key: bytes | None, address: str) -> float:
        """How much could be taken now."""
        of_key, of_address = self._kinds[kind]
        now, left = self._clock(), inf
        if of_key is not None and key is not None:
            left = of_key.left(key, now)
        if of_address is not None:
            left = min(left, of_address.left(address, now))
            if (whole := wider(address)) is not None:
                left = min(left, HOMES * of_address.left(whole, now))
        return left
