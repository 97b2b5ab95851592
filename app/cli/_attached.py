"""A command as the window starts it: `python -m app.cli._attached run --json ...`. It ends when its standard
input closes, so that nothing goes on learning after the window is gone, however the window went.

A thread watches, not the event loop: a busy loop must not keep an orphan alive. It runs at low priority, and
so does the trainer that it starts."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time

NICE = 10
LAST_RESORT_S = 6.0
"""After a stop that takes longer the process ends anyway: everything worth keeping is on the disk."""


def main(arguments: list[str]) -> int:
    if hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(NICE)
    threading.Thread(target=_until_closed, args=[os.dup(0)], daemon=True).start()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # the pipe is ours alone: nobody else reads from it or hands it on
    os.close(nothing)
    from app.cli.__main__ import main as run

    return run(arguments)


def _until_closed(pipe: int) -> None:
    with contextlib.suppress(OSError):
        while os.read(pipe, 4096):
            pass
    signal.raise_signal(signal.SIGTERM) if os.name == "nt" else os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LAST_RESORT_S)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
