"""Signals that ask a process to stop, on every system, and how to shield child processes from them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


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
    """Calls `stop`, in a thread of its own, once standard input is closed: by the process that started this
    one, or because that has ended."""

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
