"""Seconds that only ever go on, also while the computer sleeps."""

from __future__ import annotations

import sys
import time


def steady_s() -> float:
    """Counts from some moment in the past. Setting the clock does not move it, sleeping does: anyone who
    snoozed for an hour and closed the lid has snoozed."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":
        # time.monotonic stops while a Mac sleeps, this one does not (clock_gettime(3)).
        return time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.monotonic()
