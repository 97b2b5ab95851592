"""On Windows no process can become another one: it starts that one, lends it its pipes, and waits.

So that both are one to the process that started the first, what ends the first ends the other: they share a job
object, which Windows ends when the last handle of it closes, and only the first has one."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from app.desktop.facts.facts import windows

_KILL_ON_CLOSE = 0x2000
_EXTENDED_LIMITS = 9
"""JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE and JobObjectExtendedLimitInformation (winnt.h)."""
NO_WINDOW = 0x08000000
"""CREATE_NO_WINDOW (winbase.h): without it a program for consoles opens one, when it is started by a window."""


class BasicLimits(ctypes.Structure):
    """JOBOBJECT_BASIC_LIMIT_INFORMATION (winnt.h)."""

    _fields_ = [
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", ctypes.c_uint32),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", ctypes.c_uint32),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", ctypes.c_uint32),
        ("SchedulingClass", ctypes.c_uint32),
    ]


class JobLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION (winnt.h)."""

    _fields_ = [
        ("BasicLimitInformation", BasicLimits),
        ("IoInfo", ctypes.c_uint64 * 6),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    ]


def end_together(kernel32: Any = None) -> bool:
    """From here on everything that this process starts ends with it, however it ends. False where Windows
    refuses; then a child ends when its pipes close. The job's handle is left open on purpose."""
    kernel32 = kernel32 or windows("kernel32")
    kernel32.CreateJobObjectW.restype = ctypes.c_void_p
    kernel32.GetCurrentProcess.restype = ctypes.c_void_p
    job = ctypes.c_void_p(kernel32.CreateJobObjectW(None, None))
    limits = JobLimits()
    limits.BasicLimitInformation.LimitFlags = _KILL_ON_CLOSE
    size = ctypes.sizeof(limits)
    return bool(
        job
        and kernel32.SetInformationJobObject(job, _EXTENDED_LIMITS, ctypes.byref(limits), size)
        and kernel32.AssignProcessToJobObject(job, ctypes.c_void_p(kernel32.GetCurrentProcess()))
    )


def stand_in(command: Sequence[str], environment: Mapping[str, str], kernel32: Any = None) -> int:
    """Runs it with this process's own standard streams and returns its exit code. Ctrl-C reaches it by itself,
    and what it makes of that decides. Raises OSError where it does not start."""
    kernel32 = kernel32 or windows("kernel32")
    end_together(kernel32)
    hidden = 0 if kernel32.GetConsoleCP() else NO_WINDOW
    # Its streams are named, since Windows hands on no others to a program that gets no window.
    child = subprocess.Popen(
        list(command), env=dict(environment), stdin=0, stdout=1, stderr=2, creationflags=hidden
    )
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            return signed(child.wait())


def step_out(bundle: str, kernel32: Any = None) -> None:
    """What is started from here on finds its own libraries, not those of PyInstaller's folder `bundle`: that is
    where this process looks for them, and its children would too."""
    (kernel32 or windows("kernel32")).SetDllDirectoryW(None)
    os.environ["PATH"] = outside(os.environ.get("PATH", ""), bundle)


def outside(path: str, bundle: str) -> str:
    """A PATH without the folders of the bundle, which PyInstaller puts first.

    >>> outside(r"C:\\App\\_internal\\PySide6;C:\\Windows;C:\\App\\_internal", r"C:\\App\\_internal")
    'C:\\\\Windows'
    """
    root = bundle.casefold().rstrip("\\")
    kept = [one for one in path.split(";") if one and not f"{one.casefold()}\\".startswith(f"{root}\\")]
    return ";".join(kept)


def signed(code: int) -> int:
    """An exit code as sys.exit takes it: what Windows ends a crashed program with is larger than 2**31.

    >>> signed(1), signed(0xC0000005)
    (1, -1073741819)
    """
    return code - 2**32 if code >= 2**31 else code
