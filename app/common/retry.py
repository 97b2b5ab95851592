"""When to try again: pure functions of what happened, so that a test needs no clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

SHORTEST_S = 0.5
LONGEST_S = 40.0
"""With the way there, a node is back within a minute of its relay or its network."""
SPREAD = 0.1
"""A relay that sends everybody away for ten seconds gets them back over the eleventh, not all at once."""
_MOST_ASKED_S = 300.0
_GROWS = 64
"""Beyond so many failures a wait grows no more, so that no power of it overflows."""


def wait_s(failures: int, *, first_s: float, longest_s: float, growth: float = 2.0) -> float:
    """Seconds to wait after `failures` failures in a row (1 or more): the one back-off curve.

    >>> [wait_s(n, first_s=0.5, longest_s=30.0, growth=4.0) for n in (1, 2, 3, 4, 10**9)]
    [0.5, 2.0, 8.0, 30.0, 30.0]
    """
    return min(longest_s, first_s * growth ** (min(max(failures, 1), _GROWS) - 1))


def delay_s(failures: int, chance: float, retry_after_ms: int | None = None) -> float:
    """Seconds until a relay is tried again after `failures` failures in a row, doubling from 0.5 to 40.

    Half of the wait is fixed and half follows `chance`, a uniform draw from [0, 1). A relay's `retry_after_ms`
    is never undercut, however long it is.

    >>> delay_s(1, 0.0), delay_s(1, 1.0), delay_s(4, 0.5), delay_s(99, 1.0), delay_s(1, 1.0, 10_000)
    (0.5, 1.0, 6.0, 40.0, 11.0)
    """
    wait = wait_s(failures, first_s=2 * SHORTEST_S, longest_s=LONGEST_S) * (0.5 + 0.5 * chance)
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
        """Starts counting again, but a wait that was told before still holds."""
        return Pace(until=self.until)

    def wait_s(self, now: float) -> float:
        return max(0.0, self.until - now)


@dataclass(frozen=True)
class Patience:
    """So many attempts without a new byte, with growing pauses; `silent_s` without one ends an attempt."""

    attempts: int = 6
    first_s: float = 1.0
    longest_s: float = 30.0
    silent_s: float = 30.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def pause_s(self, failures: int, asked: float | None) -> float:
        """
        >>> [Patience().pause_s(failures, None) for failures in (1, 3, 9)], Patience().pause_s(1, 7.0)
        ([1.0, 4.0, 30.0], 7.0)
        """
        usual = wait_s(failures, first_s=self.first_s, longest_s=self.longest_s)
        return usual if asked is None else max(usual, min(asked, _MOST_ASKED_S))
