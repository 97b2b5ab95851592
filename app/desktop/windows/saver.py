"""Battery saver on Windows."""

from __future__ import annotations

import ctypes
from typing import Any

from app.desktop.facts.facts import SourceError
from app.desktop.facts.libraries import windows


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
