"""The relays' time: this computer's clock may be wrong, so groups are stamped with corrected time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from statistics import median_low

_REMEMBERED = 8


class RelayClock:
    """This computer's clock plus the median of the last eight differences to a relay's.

    A message takes a while to arrive, so a difference is late by that much: milliseconds, where minutes matter.
    """

    __slots__ = ("_offsets", "_wall_ms")

    def __init__(self, wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._wall_ms = wall_ms
        self._offsets: deque[int] = deque(maxlen=_REMEMBERED)

    def heard(self, time_ms: int) -> None:
        """A relay said just now what time it has, in Unix milliseconds."""
        self._offsets.append(time_ms - self._wall_ms())

    def forget(self) -> None:
        """Another relay is met: its own clock counts, not the ones before it."""
        self._offsets.clear()

    @property
    def offset_ms(self) -> int:
        """How far the relay's clock is ahead of this computer's, 0 while nothing is known.

        >>> clock = RelayClock(wall_ms=lambda: 1_000)
        >>> for told in (4_000, 4_020, 90_000): clock.heard(told)
        >>> clock.offset_ms, clock.now_ms()
        (3020, 4020)
        """
        return median_low(self._offsets) if self._offsets else 0

    def now_ms(self) -> int:
        """Corrected Unix milliseconds."""
        return max(0, self._wall_ms() + self.offset_ms)
