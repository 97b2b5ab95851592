"""Estimates the power that Shoal's processes draw from the processor: busy processor seconds x CORE_W. Graphics
cards are not counted, so the estimate is shown only where the processor computes."""

from __future__ import annotations

from collections.abc import Callable

import psutil

from app.desktop.apps import own_processes
from app.desktop.facts import steady_s

CORE_W = 8.0
"""Watts of a busy core: laptops use 4 to 8 (15 to 28 W on 4 cores), desktops 6 to 15 (65 to 125 W on 8 to 12).
An estimate may be off by half."""
_LATEST = 0.3
"""Weight of the newest reading in the running mean."""


class PowerEstimate:
    """A running mean over readings; `read` blocks for a few milliseconds."""

    def __init__(
        self, own: Callable[[], set[int]] = own_processes, clock: Callable[[], float] = steady_s
    ) -> None:
        self._own, self._clock = own, clock
        self._spent, self._at = self._spent_s(), clock()
        self._watts = 0.0

    def read(self) -> float:
        """Returns watts, rounded as they are shown: whole ones above 5."""
        spent, at = self._spent_s(), self._clock()
        drawn = CORE_W * max(0.0, spent - self._spent) / max(at - self._at, 0.1)
        self._spent, self._at = spent, at
        self._watts += _LATEST * (drawn - self._watts)
        return round(self._watts, 0 if self._watts > 5 else 1)

    def _spent_s(self) -> float:
        return sum(map(_processor_s, self._own()))


def _processor_s(pid: int) -> float:
    """Returns a process's processor seconds, including those of children that have ended."""
    try:
        return float(sum(psutil.Process(pid).cpu_times()[:4]))
    except psutil.Error:
        return 0.0
