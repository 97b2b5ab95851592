"""Windows: input idle time, battery saver, full-screen programs, console-less programs, and running a command
in place of this process.

Windows has no exec: the process starts the command, lends it its pipes, and waits. To the parent both look like
one process, so ending the first must end the second. They share a job object, which Windows ends when its last
handle closes, and only the first process has one."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.common.process import memory
from app.desktop.facts import SourceError, load_windows_library

_ERROR = 0x10
"""MB_ICONERROR (winuser.h)."""
MAX_LINES = 20


class LastLines(io.TextIOBase):
    """A text stream that keeps the last lines written to it."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self._pieces: deque[str] = deque(maxlen=200)

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._pieces.append(text)
        return len(text)

    def said(self) -> str:
        """Returns the last MAX_LINES lines.

        >>> heard = LastLines()
        >>> print("shoal: It is so.", file=heard)
        >>> heard.said()
        'shoal: It is so.'
        """
        return "\n".join("".join(self._pieces).strip().splitlines()[-MAX_LINES:])


def run_without_console(run: Callable[[], None]) -> None:
    """Calls `run`; if it fails and nobody reads standard error, shows the error in a message box. PyInstaller
    would instead show a traceback for every child process too, and keep the process until somebody closes it.
    Without pipes from its parent such a program has no standard streams at all."""
    heard = provide_streams()
    try:
        run()
    except SystemExit as end:
        if heard is not None and end.code not in (None, 0):
            show_message(end.code if isinstance(end.code, str) else heard.said())
        raise
    except Exception:
        traceback.print_exc()
        if heard is not None:
            show_message(heard.said())
        sys.exit(1)


def provide_streams() -> LastLines | None:
    """Opens missing standard streams. Returns the object that collects standard error, or None if that was
    open."""
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
    heard = LastLines()
    sys.stderr = heard
    return heard


def show_message(text: str) -> None:
    """Shows the text in a system message box and waits until it is closed. Does nothing on other systems."""
    if sys.platform == "win32" and text:
        ctypes.windll.user32.MessageBoxW(None, text.removeprefix("shoal: "), "Shoal", _ERROR)


_ROUND_MS = 2**32
_RACE_MS = 60_000
"""Tolerance in ms: input between our two calls puts the last input a few milliseconds "after" now."""


class _LastInput(ctypes.Structure):
    """LASTINPUTINFO (winuser.h)."""

    _fields_ = [("cbSize", ctypes.c_uint32), ("dwTime", ctypes.c_uint32)]


def elapsed_ms(now: int, then: int) -> int:
    """Returns the milliseconds between two readings of the 32-bit tick counter, which wraps after 49.7 days.

    >>> elapsed_ms(5_000, 2_000), elapsed_ms(1_000, 2**32 - 500), elapsed_ms(5_000, 5_003)
    (3000, 1500, 0)
    """
    elapsed = (now - then) % _ROUND_MS
    return 0 if elapsed > _ROUND_MS - _RACE_MS else elapsed


class WindowsIdle:
    """Input idle time. `user32` and `kernel32` are the system's libraries, loaded when first used. Does not
    work in a service's session, which has no input."""

    name = "input idle time (Windows)"

    def __init__(self, user32: Any = None, kernel32: Any = None) -> None:
        self._user32 = user32
        self._kernel32 = kernel32

    def read(self) -> float:
        """Returns the seconds without input. Raises SourceError."""
        self._user32 = self._user32 or load_windows_library("user32")
        self._kernel32 = self._kernel32 or load_windows_library("kernel32")
        last = _LastInput(ctypes.sizeof(_LastInput), 0)
        if not self._user32.GetLastInputInfo(ctypes.byref(last)):
            raise SourceError("Windows didn't tell when the last input was.")
        return elapsed_ms(self._kernel32.GetTickCount() % _ROUND_MS, last.dwTime) / 1000


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
        """Returns whether the battery saver is on. Raises SourceError."""
        self._kernel32 = self._kernel32 or load_windows_library("kernel32")
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
        """Returns whether a program fills the screen. Raises SourceError."""
        self._shell32 = self._shell32 or load_windows_library("shell32")
        state = ctypes.c_int(0)
        failed = self._shell32.SHQueryUserNotificationState(ctypes.byref(state))
        if failed:
            raise SourceError(f"Windows didn't tell what fills the screen (error {failed & 0xFFFFFFFF:#010x}).")
        return state.value in _FILLED


NO_WINDOW = 0x08000000
"""CREATE_NO_WINDOW (winbase.h): without it, a console program started from a window opens a console."""


def run_in_place(command: Sequence[str], environment: Mapping[str, str], kernel32: Any = None) -> int:
    """Runs the command with this process's standard streams, waits, and returns its exit code: a substitute for
    exec. Ctrl-C reaches the command directly, which decides how to react. Raises OSError if it does not
    start."""
    kernel32 = kernel32 or memory.kernel32()
    memory.end_together(kernel32)
    hidden = 0 if kernel32.GetConsoleCP() else NO_WINDOW
    # Its streams are named, since Windows hands on no others to a program that gets no window.
    child = subprocess.Popen(
        list(command), env=dict(environment), stdin=0, stdout=1, stderr=2, creationflags=hidden
    )
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            return signed_exit_code(child.wait())


def leave_bundle(bundle: str, kernel32: Any = None) -> None:
    """Makes child processes find their own libraries instead of those in PyInstaller's folder `bundle`, where
    this process and, by inheritance, its children would look first."""
    (kernel32 or load_windows_library("kernel32")).SetDllDirectoryW(None)
    os.environ["PATH"] = without_bundle(os.environ.get("PATH", ""), bundle)


def without_bundle(path: str, bundle: str) -> str:
    """Returns a PATH without the bundle's folders, which PyInstaller puts first.

    >>> without_bundle(r"C:\\App\\_internal\\PySide6;C:\\Windows;C:\\App\\_internal", r"C:\\App\\_internal")
    'C:\\\\Windows'
    """
    root = bundle.casefold().rstrip("\\")
    kept = [one for one in path.split(";") if one and not f"{one.casefold()}\\".startswith(f"{root}\\")]
    return ";".join(kept)


def signed_exit_code(code: int) -> int:
    """Converts an exit code to the signed 32-bit form that sys.exit takes: codes of crashed programs exceed
    2**31.

    >>> signed_exit_code(1), signed_exit_code(0xC0000005)
    (1, -1073741819)
    """
    return code - 2**32 if code >= 2**31 else code


def is_pipe_of_this_user(pipe: int, listens: bool, kernel32: Any = None) -> bool:
    """Whether the process at the other end of a named pipe runs as this user. `pipe`: this end's handle;
    `listens`: whether the other end is the one that listens. One that can't be looked at is another user's."""
    import psutil

    library = kernel32 or load_windows_library("kernel32")
    ask = library.GetNamedPipeServerProcessId if listens else library.GetNamedPipeClientProcessId
    number = ctypes.c_uint32()
    with contextlib.suppress(psutil.Error):
        return bool(
            ask(ctypes.c_void_p(pipe), ctypes.byref(number))
            and psutil.Process(number.value).username() == psutil.Process().username()
        )
    return False
