"""Lowers the priority of Shoal's processes, also where Linux schedules by session.

With autogroups, which many Linux systems enable, each session is a scheduling group and niceness counts only
within it, so a process in a new session competes with other sessions as an equal (sched(7), "The autogroup
feature"). A process that starts a session therefore copies its niceness to the group."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

NICE = 10


def step_back(others: Iterable[int] = ()) -> None:
    """Lowers the priority of this process, of those it will start, and of `others` that already run."""
    for process in {os.getpid(), *others}:
        _lower(process)


def _lower(process: int) -> None:
    if os.name == "nt":
        import psutil

        with contextlib.suppress(psutil.Error, OSError):
            psutil.Process(process).nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        return
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process, max(NICE, os.getpriority(os.PRIO_PROCESS, process)))
        group = Path(f"/proc/{process}/autogroup")
        if process != os.getpid() and os.getsid(process) == process and group.exists():
            group.write_text(str(NICE), encoding="ascii")


def settle(group: Path = Path("/proc/self/autogroup")) -> None:
    """Copies this process's niceness to the scheduling group of its session, if the process leads the session
    and its niceness is above 0. A session led by another process is left alone: it may be the user's whole
    desktop."""
    if os.name == "nt" or os.getsid(0) != os.getpid() or (nice := os.nice(0)) <= 0:
        return
    with contextlib.suppress(OSError):  # asked too often, or not allowed: niceness alone then
        if group.exists():
            group.write_text(str(nice), encoding="ascii")
