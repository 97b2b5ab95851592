"""Whether a program fills the screen on Windows: what Windows asks itself before it shows a notification."""

from __future__ import annotations

import ctypes
from typing import Any

from app.desktop.facts.facts import SourceError
from app.desktop.facts.libraries import windows

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
