"""What a relay lets this node do in a minute, counted here as well, so that it need not refuse anything."""

from __future__ import annotations

SHARE = 0.95
"""Of the relay's rate: two clocks never run alike."""


class Allowance:
    """A token bucket: full at first, refilled evenly. `now` is seconds of one monotonic clock."""

    __slots__ = ("_at", "_tokens", "burst", "per_min")

    def __init__(self, per_min: float, burst: float, now: float) -> None:
        self.per_min = per_min
        self.burst = burst
        self._tokens = float(burst)
        self._at = now

    def left(self, now: float) -> float:
        """Tokens there now.

        >>> bucket = Allowance(60, 4, now=0.0)
        >>> bucket.take(4, now=0.0); bucket.left(now=2.0), bucket.left(now=100.0)
        (1.9, 4.0)
        """
        gained = max(0.0, now - self._at) * self.per_min / 60 * SHARE
        return min(float(self.burst), self._tokens + gained)

    def take(self, amount: float, now: float) -> None:
        """What is not there is not owed."""
        self._tokens = max(0.0, self.left(now) - amount)
        self._at = now

    def wait_s(self, amount: float, now: float) -> float:
        """Seconds until so many tokens are there; for more than the bucket holds, until it is full."""
        missing = min(amount, float(self.burst)) - self.left(now)
        if missing <= 0:
            return 0.0
        return missing / (self.per_min / 60 * SHARE) if self.per_min > 0 else 60.0

    def empty(self, now: float) -> None:
        """The relay counts otherwise, and it is right."""
        self._tokens, self._at = 0.0, now
