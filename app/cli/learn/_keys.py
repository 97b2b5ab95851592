"""Keys of the live view: single presses of a terminal, read while the view is drawn."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Iterator
from typing import Any


class Keys:
    """`open` makes the terminal hand over each key at once and unseen, `close` gives it back as it was. Without
    a terminal, or in the background of one, nothing happens and `there` is false. Ctrl-C stays what it is."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None
        self.there = False

    def open(self) -> None:
        if not sys.stdin or not sys.stdin.isatty():
            return
        if os.name == "nt":
            self.there = True
            return
        import termios
        import tty

        with contextlib.suppress(OSError, termios.error):
            file = sys.stdin.fileno()
            if os.tcgetpgrp(file) == os.getpgrp():
                self._before = termios.tcgetattr(file)
                tty.setcbreak(file)
                self.there = True

    def pressed(self) -> Iterator[str]:
        """What was pressed since the last time, a letter at a time."""
        if not self.there:
            return
        if sys.platform == "win32":
            import msvcrt

            while msvcrt.kbhit():
                yield msvcrt.getwch()
            return
        file = sys.stdin.fileno()
        with contextlib.suppress(OSError):
            while select.select([file], [], [], 0)[0]:
                said = os.read(file, 64)
                if not said:  # the terminal is gone
                    self.there = False
                    return
                if not said.startswith(b"\x1b"):  # an arrow or a function key is no letter
                    yield from said.decode("utf-8", "replace")

    def close(self) -> None:
        self.there = False
        if self._before is not None:
            import termios

            with contextlib.suppress(OSError, termios.error):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)
            self._before = None
