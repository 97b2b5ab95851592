"""Input idle time on Windows: the moment of the last input, in milliseconds since the start as 32 bits."""

from __future__ import annotations

import ctypes
from typing import Any

from app.desktop.facts.facts import SourceError
from app.desktop.facts.libraries import windows

_ROUND_MS = 2**32
_RACE_MS = 60_000
"""Input between our two questions makes the last input lie "after" now by a few milliseconds."""


class _LastInput(ctypes.Structure):
    """LASTINPUTINFO (winuser.h)."""

    _fields_ = [("cbSize", ctypes.c_uint32), ("dwTime", ctypes.c_uint32)]


def elapsed_ms(now: int, then: int) -> int:
    """Milliseconds between two readings of the 32-bit counter, which starts again after 49.7 days.

    >>> elapsed_ms(5_000, 2_000), elapsed_ms(1_000, 2**32 - 500), elapsed_ms(5_000, 5_003)
    (3000, 1500, 0)
    """
    elapsed = (now - then) % _ROUND_MS
    return 0 if elapsed > _ROUND_MS - _RACE_MS else elapsed


class WindowsIdle:
    """`user32` and `kernel32` are the system's libraries, loaded when first asked. Does not work in a service's
    session, which has no input of its own."""

    name = "input idle time (Windows)"

    def __init__(self, user32: Any = None, kernel32: Any = None) -> None:
        self._user32 = user32
        self._kernel32 = kernel32

    def read(self) -> float:
        """Seconds without input. Raises SourceError."""
        self._user32 = self._user32 or windows("user32")
        self._kernel32 = self._kernel32 or windows("kernel32")
        last = _LastInput(ctypes.sizeof(_LastInput), 0)
        if not self._user32.GetLastInputInfo(ctypes.byref(last)):
            raise SourceError("Windows didn't tell when the last input was.")
        return elapsed_ms(self._kernel32.GetTickCount() % _ROUND_MS, last.dwTime) / 1000
