"""The progress that the owner sees during set-up: plain lines on standard error, a moving one where there is
a terminal."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from types import TracebackType


def say(sentence: str) -> None:
    """One line to the owner. Standard output belongs to the command, which may be writing JSON there."""
    print(sentence, file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    """Elapsed time as minutes and seconds: 75 s is "1:15"."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class ProgressLine:
    """Shows what is being done. On a terminal one line is rewritten with the elapsed time; otherwise each step
    is a line, and a long silence is broken every half minute."""

    def __init__(self) -> None:
        self._doing = "looking at what is there"
        self._began = time.monotonic()
        self._last = self._began
        self._moving = sys.stderr.isatty()
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> ProgressLine:
        self._ticker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._ticker.join()
        if self._moving:
            sys.stderr.write("\r\033[K")
        if error is None:
            self._doing = "done"
            self._line()

    def step(self, doing: str) -> None:
        """Shows the present step, in a few words."""
        self._doing = doing
        if not self._moving:
            self._line()

    def _line(self) -> None:
        self._last = time.monotonic()
        say(f"  {clock(self._last - self._began)}  {self._doing}")

    def _tick(self) -> None:
        while not self._over.wait(0.2):
            if self._moving:
                text = f"  {clock(time.monotonic() - self._began)}  {self._doing}"
                sys.stderr.write("\r\033[K" + text[: shutil.get_terminal_size().columns - 1])
                sys.stderr.flush()
            elif time.monotonic() - self._last > 30:
                self._line()
