"""Progress events that a command prints for the window and other programs: one JSON object per line.

Downloads, engine packs, updates and exports all use the four kinds here. A job may add kinds of its own;
readers of the four skip them."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from app.common.rate import TransferSpeed

REPORT_EVERY_S = 0.25
"""Minimum seconds between two progress reports, except the last."""


class JobEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=str.lower):
    """Base of all events, one per line; the field `event` names the kind."""


class Progress(JobEvent, frozen=True, kw_only=True):
    """`have` of the `total` bytes of the current `stage`, now reading `file`; `share` (0 to 1) or `percent` of
    the whole job is done. `per_second` (bytes) and `left_s` are None until they are known."""

    have: int = 0
    total: int = 0
    file: str = ""
    stage: str = ""
    sentence: str = ""
    percent: int = 0
    share: float = 0.0
    per_second: float | None = None
    left_s: float | None = None


class Waiting(JobEvent, frozen=True, kw_only=True):
    """The job is paused; it continues by itself in `seconds`."""

    sentence: str
    seconds: float


class Done(JobEvent, frozen=True, kw_only=True):
    """The job succeeded; subclasses add its result."""

    sentence: str = ""


class Failed(JobEvent, frozen=True, kw_only=True):
    """The job failed; `sentence` says why and what to do, and what has arrived is kept. `model` is the
    requested model, if any."""

    sentence: str
    model: str = ""


JobLine = Progress | Waiting | Done | Failed


def read(line: bytes) -> JobLine | None:
    """Decodes a line as Progress, Waiting, Done or Failed; returns None for any other line."""
    try:
        return msgspec.json.decode(line, type=JobLine)
    except msgspec.MsgspecError:
        return None


Tell = Callable[[JobEvent], None]


class Reporter:
    """Reports the progress and speed of a download, at most once every REPORT_EVERY_S seconds."""

    def __init__(self, tell: Tell) -> None:
        self._tell, self._speed, self._last = tell, TransferSpeed(), 0.0

    def progress(self, have: int, total: int, file: str = "", at_once: bool = False) -> None:
        """Reports that `have` of `total` bytes are on disk. `at_once` reports even if the last report was less
        than REPORT_EVERY_S ago."""
        now = time.monotonic()
        if not at_once and now - self._last < REPORT_EVERY_S and have < total:
            return
        self._last = now
        per_second, left_s = self._speed.record(have, total)
        self._tell(Progress(have=have, total=total, file=file, per_second=per_second, left_s=left_s))

    def waiting(self, sentence: str, seconds: float) -> None:
        """Reports a pause and restarts the measurement of the speed."""
        self._tell(Waiting(sentence=sentence, seconds=seconds))
        self._speed.restart()
