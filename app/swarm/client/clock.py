"""Estimates the relay's time, because this computer's clock may be wrong or be changed; groups are stamped with
it."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from statistics import median_low

_REMEMBERED = 8


def steady_ms() -> int:
    """Milliseconds of a clock that cannot be set, from an arbitrary moment. It runs while the computer sleeps;
    `time.monotonic` does not on Linux and macOS."""
    if sys.platform == "win32":
        return time.monotonic_ns() // 1_000_000
    # on macOS CLOCK_MONOTONIC counts sleep
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock) // 1_000_000


class RelayClock:
    """Estimates the relay's time: a monotonic clock plus the median of the last eight measured offsets. Uses
    the system clock until a relay has been heard from.

    Network latency biases the offsets by milliseconds, which is negligible because the limits that use this
    clock are minutes."""

    __slots__ = ("_offsets", "_steady_ms", "_wall_ms")

    def __init__(
        self,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        steady_ms: Callable[[], int] = steady_ms,
    ) -> None:
        self._wall_ms = wall_ms
        self._steady_ms = steady_ms
        self._offsets: deque[int] = deque(maxlen=_REMEMBERED)

    def record_time(self, time_ms: int) -> None:
        """Records an offset from the relay's current time in Unix milliseconds."""
        self._offsets.append(time_ms - self._steady_ms())

    def forget(self) -> None:
        """Forgets the offsets; call it when another relay is used."""
        self._offsets.clear()

    @property
    def offset_ms(self) -> int:
        """Milliseconds that the relay's clock is ahead of this computer's, 0 if unknown.

        >>> clock = RelayClock(wall_ms=lambda: 1_000, steady_ms=lambda: 7)
        >>> for told in (4_000, 4_020, 90_000): clock.record_time(told)
        >>> clock.offset_ms, clock.now_ms()
        (3020, 4020)
        """
        return self.now_ms() - self._wall_ms() if self._offsets else 0

    def now_ms(self) -> int:
        """The relay's estimated time in Unix milliseconds."""
        if not self._offsets:
            return max(0, self._wall_ms())
        return max(0, self._steady_ms() + median_low(self._offsets))
