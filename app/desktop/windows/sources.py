"""What Windows tells: input idle time, its battery saver, and whether a program fills the screen, which Windows
asks itself before it shows a notification."""

from __future__ import annotations

import ctypes
from typing import Any

from app.desktop.facts.facts import SourceError, windows

# Input idle time on Windows: the moment of the last input, in milliseconds since the start as 32 bits.

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


# Battery saver on Windows.


class _PowerStatus(ctypes.Structure):
    """SYSTEM_POWER_STATUS (winbase.h)."""

    _fields_ = [
        ("ACLineStatus", ctypes.c_uint8),
        ("BatteryFlag", ctypes.c_uint8),
        ("BatteryLifePercent", ctypes.c_uint8),
        ("SystemStatusFlag", ctypes.c_uint8),
        ("BatteryLifeTime", ctypes.c_uint32),
        ("BatteryFullLifeTime", ctypes.c_uint32),
    ]


class WindowsSaver:
    name = "battery saver (Windows)"

    def __init__(self, kernel32: Any = None) -> None:
        self._kernel32 = kernel32

    def read(self) -> bool:
        """Raises SourceError."""
        self._kernel32 = self._kernel32 or windows("kernel32")
        status = _PowerStatus()
        if not self._kernel32.GetSystemPowerStatus(ctypes.byref(status)):
            raise SourceError("Windows didn't tell its power status.")
        return bool(status.SystemStatusFlag == 1)


_FILLED = frozenset({2, 3, 4})
"""QUNS_BUSY, QUNS_RUNNING_D3D_FULL_SCREEN, QUNS_PRESENTATION_MODE (shellapi.h)."""


class WindowsScreen:
    name = "full-screen program (Windows)"

    def __init__(self, shell32: Any = None) -> None:
        self._shell32 = shell32

    def read(self) -> bool:
        """Raises SourceError."""
        self._shell32 = self._shell32 or windows("shell32")
        state = ctypes.c_int(0)
        failed = self._shell32.SHQueryUserNotificationState(ctypes.byref(state))
        if failed:
            raise SourceError(f"Windows didn't tell what fills the screen (error {failed & 0xFFFFFFFF:#010x}).")
        return state.value in _FILLED
