"""When to try again: pure functions of what happened, so that a test needs no clock."""

from __future__ import annotations

import msgspec

SHORTEST_S = 0.5
LONGEST_S = 60.0
SPREAD = 0.1
"""A relay that sends everybody away for ten seconds gets them back over the eleventh, not all at once."""


def delay_s(failures: int, chance: float, retry_after_ms: int | None = None) -> float:
    """Seconds to wait after `failures` failures in a row (1 or more), doubling from 0.5 to 60.

    Half of the wait is fixed and half follows `chance`, a uniform draw from [0, 1). A relay's `retry_after_ms`
    is never undercut, however long it is.

    >>> delay_s(1, 0.0), delay_s(1, 1.0), delay_s(4, 0.5), delay_s(99, 1.0), delay_s(1, 1.0, 10_000)
    (0.5, 1.0, 6.0, 60.0, 11.0)
    """
    longest = min(LONGEST_S, 2 * SHORTEST_S * 2.0 ** (min(max(failures, 1), 10) - 1))
    wait = longest * (0.5 + 0.5 * chance)
    told = (retry_after_ms or 0) / 1000
    return max(wait, told * (1 + SPREAD * chance))


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Failures in a row, and until when to hold back. `now` and `until` are seconds of one monotonic clock."""

    failures: int = 0
    until: float = float("-inf")

    def failed(self, now: float, chance: float, retry_after_ms: int | None = None) -> Pace:
        """One more failure. A wait that was told before still holds."""
        failures = self.failures + 1
        return Pace(failures=failures, until=max(self.until, now + delay_s(failures, chance, retry_after_ms)))

    def worked(self) -> Pace:
        """Starts counting anew, but a wait that was told before still holds."""
        return Pace(until=self.until)

    def wait_s(self, now: float) -> float:
        return max(0.0, self.until - now)
