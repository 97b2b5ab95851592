"""The output of commands while they work: one JSON object a line, or progress on one line of a terminal;
the question before something goes; and being stopped while something is fetched for minutes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading

import msgspec
import psutil

from app.common.process.stopping import meant


def json_line(event: object) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(event) + b"\n")
    sys.stdout.buffer.flush()


def agreed(question: str) -> bool | None:
    """Whether the person said yes; None where no one can answer."""
    if not sys.stdin.isatty():
        return None
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


class TerminalLine:
    """Progress on one line of a terminal; where it is none, a line now and then."""

    def __init__(self, live: bool | None = None) -> None:
        self._live = sys.stderr.isatty() if live is None else live
        self._open = False
        self._step: object = None

    def progress(self, text: str, step: object = None) -> None:
        """The text as it is now; `step` changes when it is worth a line of its own, None never is."""
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{text[:width]:{width}}", end="", file=sys.stderr, flush=True)
            self._open = True
        elif step is not None and step != self._step:
            print(text, file=sys.stderr, flush=True)
        self._step = step

    def say(self, *lines: str) -> None:
        """Ends the line of the progress, and says these on lines of their own."""
        if self._open:
            print(file=sys.stderr)
            self._open = False
        for line in lines:
            print(line, file=sys.stderr, flush=True)


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
