"""A node under a window of another process: its snapshots go out as JSON lines, orders come in as JSON lines.

out   {"event":"snapshot","snapshot":{..}}     whenever it changed, large parts only when they did
in    {"command":"stop"}                       now, safely; so does the end of the input
      {"command":"finish"}                     after the round in flight
      {"command":"begin"}                      with --hold: the first round may begin
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Any, Literal, TextIO

import msgspec

from app.node.snapshot import Snapshot

_LARGE = ("curve", "families", "answers")
_LONGEST = 4096


Command = Literal["stop", "finish", "begin"]


class Order(msgspec.Struct, frozen=True):
    command: Command


class SnapshotLines:
    """A view as the terminal's is one: `refresh` a few times a second."""

    def __init__(self, stream: TextIO, read: Callable[[], Snapshot]) -> None:
        self._stream, self._read = stream, read
        self._last: Snapshot | None = None

    def open(self) -> None:
        self.refresh()

    def refresh(self) -> None:
        """Raises BrokenPipeError when nobody reads any more."""
        snapshot, last = self._read(), self._last
        if snapshot == last:
            return
        shown: dict[str, Any] = msgspec.to_builtins(snapshot)
        for name in _LARGE:
            if last is not None and getattr(snapshot, name) == getattr(last, name):
                del shown[name]
        self._last = snapshot
        line = msgspec.json.encode({"event": "snapshot", "snapshot": shown}).decode()
        self._stream.write(line + "\n")
        self._stream.flush()

    def close(self) -> None:
        self.refresh()


def listen(descriptor: int, order: Callable[[Command], None]) -> None:
    """Hands on orders as they come, from a thread that ends with the process. Lines that are none are passed
    over; the end of the input is an order to stop.

    It reads the descriptor itself: a thread inside Python's standard input is fatal when the process ends.
    """

    def work() -> None:
        rest = b""
        with contextlib.suppress(OSError):
            while content := os.read(descriptor, _LONGEST):
                *lines, rest = (rest + content).split(b"\n")
                rest = rest[-_LONGEST:]
                for line in lines:
                    with contextlib.suppress(msgspec.MsgspecError):
                        order(msgspec.json.decode(line, type=Order).command)
        order("stop")

    threading.Thread(target=work, name="orders", daemon=True).start()
