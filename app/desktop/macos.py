"""What macOS tells: input idle time; low-power mode and heat, two properties of NSProcessInfo that are read
through the Objective-C runtime."""

from __future__ import annotations

import ctypes
from typing import Any

from app.desktop.facts import SourceError, shared

# Input idle time on macOS: Quartz counts the seconds since the last event, and asks no one's permission.

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


_RUNTIME = "/usr/lib/libobjc.A.dylib"
_FOUNDATION = "/System/Library/Frameworks/Foundation.framework/Foundation"
_SERIOUS = 2
"""NSProcessInfoThermalStateSerious; 3 is critical."""


class ProcessInfo:
    """The system's own object, which lives as long as the process. Raises SourceError anywhere else."""

    def __init__(self, runtime: Any = None) -> None:
        if runtime is None:
            shared(_FOUNDATION)
            runtime = shared(_RUNTIME)
        self._runtime = runtime
        for name in ("objc_getClass", "sel_registerName"):
            function = getattr(runtime, name)
            function.argtypes, function.restype = [ctypes.c_char_p], ctypes.c_void_p
        # The function has the type of the method that it calls, so every use needs its own prototype.
        self._send = ctypes.cast(runtime.objc_msgSend, ctypes.c_void_p).value or 0
        self._object = self.get(runtime.objc_getClass(b"NSProcessInfo"), b"processInfo", ctypes.c_void_p)

    def get(self, target: Any, selector: bytes, kind: Any) -> Any:
        prototype = ctypes.CFUNCTYPE(kind, ctypes.c_void_p, ctypes.c_void_p)
        return prototype(self._send)(target, self._runtime.sel_registerName(selector))

    def low_power(self) -> bool:
        return bool(self.get(self._object, b"isLowPowerModeEnabled", ctypes.c_bool))

    def thermal_state(self) -> int:
        return int(self.get(self._object, b"thermalState", ctypes.c_long))


class _Asked:
    """The process's own object, made when first asked."""

    def __init__(self, info: ProcessInfo | None = None) -> None:
        self._given = info

    @property
    def _info(self) -> ProcessInfo:
        self._given = self._given or ProcessInfo()
        return self._given


class MacSaver(_Asked):
    name = "low-power mode (macOS)"

    def read(self) -> bool:
        """Raises SourceError."""
        return self._info.low_power()


class MacHeat(_Asked):
    name = "thermal state (macOS)"

    def read(self) -> bool:
        """Raises SourceError."""
        return self._info.thermal_state() >= _SERIOUS
