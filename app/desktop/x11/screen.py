"""Whether a program fills the screen on X11: the active window's state (EWMH)."""

from __future__ import annotations

from app.desktop.x11.x11 import Connected


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
