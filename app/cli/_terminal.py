"""The output of commands while they work: one JSON object a line, or progress on one line of a terminal; and
the question before something goes."""

from __future__ import annotations

import shutil
import sys

import msgspec


def json_line(event: object) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(event) + b"\n")
    sys.stdout.buffer.flush()


def agreed(question: str) -> bool | None:
    """Whether the person said yes; None where nobody can answer."""
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
