"""A program without a console (Windows): where no one gave it pipes, Python has no standard streams at all.
They lead nowhere then, and what it said last is shown in a small window when it fails."""

from __future__ import annotations

import ctypes
import io
import os
import sys
import traceback
from collections import deque
from collections.abc import Callable

_ERROR = 0x10
"""MB_ICONERROR (winuser.h)."""
MOST_LINES = 20


class Heard(io.TextIOBase):
    """Keeps the end of what is written."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self._pieces: deque[str] = deque(maxlen=200)

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._pieces.append(text)
        return len(text)

    def said(self) -> str:
        """Its last lines.

        >>> heard = Heard()
        >>> print("shoal: It is so.", file=heard)
        >>> heard.said()
        'shoal: It is so.'
        """
        return "\n".join("".join(self._pieces).strip().splitlines()[-MOST_LINES:])


def watched(run: Callable[[], None]) -> None:
    """Runs it; what goes wrong is shown where no one reads it. Nothing is left to PyInstaller, which would show
    a traceback for every child process too, and let that live until somebody has closed it."""
    heard = provide()
    try:
        run()
    except SystemExit as end:
        if heard is not None and end.code not in (None, 0):
            show(end.code if isinstance(end.code, str) else heard.said())
        raise
    except Exception:
        traceback.print_exc()
        if heard is not None:
            show(heard.said())
        sys.exit(1)


def provide() -> Heard | None:
    """Standard streams for who has none. What it returns hears the errors that no one else would see; None
    where somebody reads them."""
    missing = [
        number for number, name in enumerate(("stdin", "stdout", "stderr")) if getattr(sys, name) is None
    ]
    for number in missing:
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != number:
            os.dup2(nowhere, number)
            os.close(nowhere)
    if 0 in missing:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if 1 in missing:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if 2 not in missing:
        return None
    heard = Heard()
    sys.stderr = heard
    return heard


def show(text: str) -> None:
    """In a window of the system's own, until somebody has read it."""
    if sys.platform == "win32" and text:
        ctypes.windll.user32.MessageBoxW(None, text.removeprefix("shoal: "), "Shoal", _ERROR)
