"""Watches memory between the trainer's steps: how much the computer has left, and whether this process keeps
growing.

The budget is measured when an engine opens. Other programs may start later, and memory may grow with every
round; then the engine is asked for smaller steps before the system kills the process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import psutil

from app.common.process.memory import free_memory
from engines.container import memory_left
from engines.facts import MB

LOW_MEMORY_SHARE = 0.06
"""Share of free memory below which the computer is about to swap or to kill processes."""

TREND_STEPS = 24
"""Number of steps over which growth is judged."""

GROWTH_SHARE = 0.25  # of what the trainer held at first, over a trend; less is fragmentation
GROWTH_MB = 256
"""A process keeps growing if over this window it grew by more than this share and this many MB, in most of the
steps."""

COOLDOWN_STEPS = 3
"""Number of optimiser steps to wait after reducing the step size in memory before reducing it again, so that
the effect can be measured first."""


class MemoryReading(msgspec.Struct, frozen=True):
    """Memory after one step: this process's size in MB, and the free share of the computer's memory."""

    held_mb: int
    free: float


def read() -> MemoryReading:
    memory = psutil.virtual_memory()
    room = min(memory.available, memory_left())
    return MemoryReading(psutil.Process().memory_info().rss // MB, room / memory.total)


def is_short(readings: Sequence[MemoryReading]) -> bool:
    """Whether memory was short twice in a row, so that short spikes of other processes are ignored.

    >>> short = MemoryReading(500, 0.02)
    >>> is_short([MemoryReading(500, 0.5), short]), is_short([short, short])
    (False, True)
    """
    return len(readings) >= 2 and all(reading.free < LOW_MEMORY_SHARE for reading in readings[-2:])


def grows(readings: Sequence[MemoryReading]) -> bool:
    """Whether the process grew over a full window, in most steps and by much. A plateau after the first rounds
    does not count.

    >>> grows([MemoryReading(1000 + 50 * step, 0.5) for step in range(TREND_STEPS)])
    True
    >>> grows([MemoryReading(min(1000 + 50 * step, 1400), 0.5) for step in range(TREND_STEPS)])
    False
    """
    if len(readings) < TREND_STEPS:
        return False
    held = [reading.held_mb for reading in readings[-TREND_STEPS:]]
    ups = sum(after > before for before, after in pairwise(held))
    grown = held[-1] - held[0]
    return ups >= 0.75 * (TREND_STEPS - 1) and grown > max(GROWTH_MB, GROWTH_SHARE * held[0])


class MemoryWatch:
    """Checks memory after every step. `step_down` is the engine's method: it returns what it did, or None if it
    cannot use less memory."""

    def __init__(self, read: Callable[[], MemoryReading] = read) -> None:
        self._read = read
        self._readings: list[MemoryReading] = []
        self._pause = 0
        self._exhausted = False

    def after_step(self, step_down: Callable[[], str | None]) -> str | None:
        """Calls `step_down` if memory is short or keeps growing. Returns a sentence for the owner if something
        was done."""
        self._readings = [*self._readings[-TREND_STEPS:], self._read()]
        if self._pause:
            self._pause -= 1
            return None
        short, growing = is_short(self._readings), grows(self._readings)
        if self._exhausted or not (short or growing):
            return None
        last, first = self._readings[-1], self._readings[0]
        self._readings, self._pause = [], COOLDOWN_STEPS
        free_memory()
        if not short and self._read().held_mb <= first.held_mb + max(GROWTH_MB, GROWTH_SHARE * first.held_mb):
            return None  # it was free already, only not given back
        done = step_down()
        if done is None:
            self._exhausted = True
            done = "Nothing smaller is left: close other programs or choose a smaller model."
        if short:
            return f"Only {100 * last.free:.0f} % of this computer's memory is free. {done}"
        return f"The trainer's memory has grown to {last.held_mb:,} MB over {TREND_STEPS} steps. {done}"


def memory_limit(percent: int) -> int:
    """Returns the maximum bytes that a trainer may use, from the owner's setting; 0 means no limit. NVIDIA
    cards have no limit, because their driver's reservations were never measured."""
    if percent >= 100 or Path("/dev/nvidiactl").exists():
        return 0
    return psutil.virtual_memory().total * percent // 100
