"""Controls this process and its children: priority, stop signals, and sessions.

With autogroups, which many Linux systems enable, each session is a scheduling group and niceness counts only
within it, so a process in a new session competes with other sessions as an equal (sched(7), "The autogroup
feature"). A process that starts a session therefore copies its niceness to the group."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

NICE = 10  # half way to the lowest priority: other programs come first, and some work is still done
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


def lower_priority(others: Iterable[int] = ()) -> None:
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


def apply_niceness_to_session(group: Path = Path("/proc/self/autogroup")) -> None:
    """Copies this process's niceness to the scheduling group of its session, if the process leads the session
    and its niceness is above 0. A session led by another process is left alone: it may be the user's whole
    desktop."""
    if os.name == "nt" or os.getsid(0) != os.getpid() or (nice := os.nice(0)) <= 0:
        return
    with contextlib.suppress(OSError):  # called too often or not allowed: then only niceness applies
        if group.exists():
            group.write_text(str(nice), encoding="ascii")


def stop_signals() -> Sequence[int]:
    """Returns the signals that ask this process to stop. Signals that the parent set to "ignore" are left out:
    nohup does so with SIGHUP, and a script's `&` with SIGINT."""
    known = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    return [number for number in known if signal.getsignal(number) is not signal.SIG_IGN]


def when_asked_to_stop(stop: Callable[[], None]) -> None:
    """Calls `stop` in the running event loop at each stop signal. Raises RuntimeError if no loop is running."""
    loop = asyncio.get_running_loop()
    for number in stop_signals():
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # Windows has no such call in its loop
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))


def when_input_closes(stop: Callable[[], object]) -> None:
    """Calls `stop` in a new thread once standard input closes: the parent process closed it or has ended."""

    def wait() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        stop()

    threading.Thread(target=wait, name="stdin", daemon=True).start()


def detached_popen_kwargs() -> dict[str, Any]:
    """Returns arguments for subprocess.Popen that start the child in a new session (a process group on
    Windows), so that Ctrl-C in the terminal does not reach it and its parent can stop it in order."""
    if os.name == "nt":
        return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
    return {"start_new_session": True}
