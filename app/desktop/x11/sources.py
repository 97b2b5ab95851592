"""What X11 tells: input idle time, and whether a program fills the screen (the active window's state, EWMH)."""

from __future__ import annotations

import ctypes
from typing import Any

from app.desktop.facts.facts import SourceError, shared
from app.desktop.x11.x11 import Connected

# Input idle time on X11: the screen saver extension. Not under Wayland, where it lies and may block.


class _Info(ctypes.Structure):
    """XScreenSaverInfo (X11/extensions/scrnsaver.h)."""

    _fields_ = [
        ("window", ctypes.c_ulong),
        ("state", ctypes.c_int),
        ("kind", ctypes.c_int),
        ("til_or_since", ctypes.c_ulong),
        ("idle", ctypes.c_ulong),
        ("eventMask", ctypes.c_ulong),
    ]


class X11Idle:
    name = "input idle time (X11)"

    def __init__(self, display: str) -> None:
        self._connected = Connected(display)
        self._library: Any = None
        self._info: Any = None

    def read(self) -> float:
        """Seconds without input. Raises SourceError."""
        display = self._connected.display()
        saver = self._saver()
        found = saver.XScreenSaverQueryInfo(display.pointer, display.root, self._info)
        self._connected.check()
        if not found:
            raise SourceError(f"The X server {self._connected.name} has no screen saver extension.")
        return int(self._info.contents.idle) / 1000

    def _saver(self) -> Any:
        if self._library is None:
            library = shared("libXss.so.1")
            library.XScreenSaverAllocInfo.restype = ctypes.POINTER(_Info)
            library.XScreenSaverQueryInfo.argtypes = [ctypes.c_void_p, ctypes.c_ulong, ctypes.POINTER(_Info)]
            self._info = library.XScreenSaverAllocInfo()
            self._library = library
        return self._library


class X11Screen:
    name = "full-screen program (X11)"

    def __init__(self, display: str) -> None:
        self._connected = Connected(display)

    def read(self) -> bool:
        """Without a window manager no window is active, and none fills the screen. Raises SourceError."""
        display = self._connected.display()
        active = display.numbers(display.root, b"_NET_ACTIVE_WINDOW")
        states = display.numbers(active[0], b"_NET_WM_STATE") if active and active[0] else []
        full = display.atom(b"_NET_WM_STATE_FULLSCREEN")
        self._connected.check()
        return full in states
