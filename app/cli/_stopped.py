"""Commands that fetch for minutes, stopped: no error, and nothing is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading

import psutil

from app.common.process.stopping import meant


def stop_quietly(command: str, attached: bool) -> None:
    """From now on a request to stop ends this process and its children with a sentence. `attached`: the end of
    standard input is such a request too, so that nothing goes on behind a closed window."""

    def stop(*_: object) -> None:
        with contextlib.suppress(OSError):
            said = f"shoal {command}: Stopped; the same command continues where it was."
            print(said, file=sys.stderr, flush=True)
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process().children(recursive=True):
                child.kill()
        os._exit(1)

    for number in meant():
        signal.signal(number, stop)
    if attached:
        threading.Thread(target=lambda: stop(os.read(0, 1)), daemon=True).start()
