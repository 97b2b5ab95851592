"""Input idle time on macOS: Quartz counts the seconds since the last event, and asks no one's permission."""

from __future__ import annotations

import ctypes
from typing import Any

from app.desktop.facts.facts import SourceError
from app.desktop.facts.libraries import shared

_FRAMEWORK = "/System/Library/Frameworks/ApplicationServices.framework/ApplicationServices"
_HARDWARE = 1
"""kCGEventSourceStateHIDSystemState: real devices, not events that programs make."""
_ANY_INPUT = 0xFFFFFFFF
"""kCGAnyInputEventType."""


class MacIdle:
    name = "input idle time (macOS)"

    def __init__(self, quartz: Any = None) -> None:
        self._quartz = quartz

    def read(self) -> float:
        """Seconds without input. Raises SourceError."""
        self._quartz = self._quartz or shared(_FRAMEWORK)
        asked = self._quartz.CGEventSourceSecondsSinceLastEventType
        asked.argtypes, asked.restype = [ctypes.c_int32, ctypes.c_uint32], ctypes.c_double
        seconds = float(asked(_HARDWARE, _ANY_INPUT))
        if not seconds >= 0:
            raise SourceError("macOS didn't tell when the last input was.")
        return seconds
