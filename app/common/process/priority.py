"""Low priority, even where Linux schedules by session.

With autogroups, which many Linux systems have on, each session is a scheduling group: niceness counts within it
alone, and a process that began its own session competes with everybody else as an equal (sched(7), "The
autogroup feature"). So a process that begins a session passes its niceness on to the group.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

NICE = 10


def step_back(others: Iterable[int] = ()) -> None:
    """Low priority for this process, those it will start, and others that run already."""
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
    """Gives the session that this process leads its niceness, if that is low. A session that another process
    leads is left alone: it may be the owner's whole desktop."""
    if os.name == "nt" or os.getsid(0) != os.getpid() or (nice := os.nice(0)) <= 0:
        return
    with contextlib.suppress(OSError):  # asked too often, or not allowed: niceness alone then
        if group.exists():
            group.write_text(str(nice), encoding="ascii")
