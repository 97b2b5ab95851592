"""The output of commands while they work: one JSON object a line, or progress on one line of a terminal; the
question before something is deleted; and stopping a command during a long download."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sys
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from app.cli._saying import spoken
from app.common.process.control import stop_signals, when_input_closes
from app.common.process.streams import plain_json, plain_text

if TYPE_CHECKING:
    from app.common.job import Failed


def overwrite(text: str) -> None:
    """Writes a line on standard error over the one that stands there."""
    stream = getattr(sys.stderr, "stream", sys.stderr)
    print(f"\r{plain_text(text)}", end="", file=stream, flush=True)


def json_line(event: object) -> None:
    import msgspec  # the list of commands needs nothing installed

    sys.stdout.buffer.write(plain_json(msgspec.json.encode(event).decode()).encode() + b"\n")
    sys.stdout.buffer.flush()


class WrongUsage(Exception):
    """An invalid command line. The message is for the user; the command ends with exit code 2."""


class UnansweredError(Exception):
    """A confirmation is needed, but nobody can be asked."""


def confirm(question: str, yes: bool) -> bool:
    """Asks the person to confirm; True if they agree, or if `yes` was given on the command line. Raises
    UnansweredError without a terminal."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UnansweredError(f"{question} No one can answer here: add --yes.")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def say(text: str, file: TextIO | None = None) -> None:
    """Prints lines for people, in their language and wrapped at words to the terminal's width. Other output has
    one line each in English, wrapped if COLUMNS is set for stdout."""
    out = sys.stdout if file is None else file
    if out.isatty():
        width = shutil.get_terminal_size().columns
        text = "\n".join(map(spoken, text.split("\n")))
    else:
        width = int((out is sys.stdout and os.environ.get("COLUMNS")) or 10**6)
    print("\n".join(folded(line, width) for line in text.split("\n")), file=out, flush=True)


def folded(line: str, width: int) -> str:
    """Wraps a line, indenting the rest below the second column of a list, else by two more columns.

    >>> print(folded("  one  two three", 11))
      one  two
           three
    """
    if len(line) <= width:
        return line
    begin = line[: len(line) - len(line.lstrip())]
    item = re.match(r"\s+\S.{,20}?\s{2,}", line)
    hanging = " " * item.end() if item else begin and begin + "  "
    fill = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    fill.initial_indent, fill.subsequent_indent = begin, hanging
    return "\n".join(fill.wrap(line.strip()))


class TerminalLine:
    """Progress on one line of a terminal; without a terminal, an occasional line."""

    def __init__(self, live: bool | None = None) -> None:
        self._live = sys.stderr.isatty() if live is None else live
        self._open = False
        self._step: object = None

    def progress(self, text: str, step: object = None) -> None:
        """Shows the current text; without a terminal it is printed whenever `step` changes (None: never)."""
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            overwrite(f"{text[:width]:{width}}")
            self._open = True
        elif step is not None and step != self._step:
            print(text, file=sys.stderr, flush=True)
        self._step = step

    def say(self, *lines: str) -> None:
        """Ends the progress line and prints further lines."""
        if self._open:
            print(file=sys.stderr)
            self._open = False
        for line in lines:
            say(line, sys.stderr)


class JobLines(TerminalLine):
    """Prints a job for people: progress on one terminal line, everything else on separate lines."""

    def show(self, event: object) -> None:
        from app.common.job import Progress, Waiting  # the list of commands needs nothing installed
        from app.common.text import in_bytes

        match event:
            case Progress():
                size = f"{in_bytes(event.have)} of {in_bytes(event.total)}" if event.total else ""
                rate = f", {in_bytes(event.per_second)}/s" if event.per_second else ""
                left = f", {event.left_s:.0f} s left" if event.left_s else ""
                tenth = 10 * event.have // event.total if event.total else 10
                whole = f"{event.percent:3} % {event.sentence} " if event.sentence else ""
                self.progress(f"{whole}{size}{rate}{left}", event.sentence or tenth)
            case Waiting():
                self.say(f"{event.sentence} Going on in at most {event.seconds:.0f} s.")
            case _:
                self.say(*filter(None, [str(getattr(event, "sentence", ""))]))


@contextlib.contextmanager
def report_failure(
    as_json: bool, *errors: type[Exception], model: str = "", kind: type[Failed] | None = None
) -> Iterator[None]:
    """Context manager that prints a Failed line as JSON when one of `errors` is raised, then raises it again.
    `model` is the requested model."""
    try:
        yield
    except errors as error:
        if as_json:
            from app.common.job import Failed

            json_line((kind or Failed)(sentence=str(error), model=model))
        raise


def stop_quietly(command: str, attached: bool) -> None:
    """On a stop signal, prints a sentence, kills the child processes and exits with code 1. `attached`: also
    when standard input closes, so that nothing continues after its window has closed."""
    import psutil  # the list of commands needs nothing installed

    def stop(*_: object) -> None:
        with contextlib.suppress(OSError):
            said = f"shoal {command}: Stopped; the same command continues where it was."
            print(said, file=sys.stderr, flush=True)
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process().children(recursive=True):
                child.kill()
        os._exit(1)

    for number in stop_signals():
        signal.signal(number, stop)
    if attached:
        when_input_closes(stop)
