"""What a command says while it works, for the window and for other programs: one JSON object a line, of four
kinds. Downloads, engine packs, new versions and exports all speak it; each may add kinds of its own, which
readers of these four pass over."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from app.common.rate import TransferSpeed

TELL_S = 0.25
"""Minimum seconds between two reports of progress, except at the end."""


class JobEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=str.lower):
    """One line; `event` names its kind."""


class Progress(JobEvent, frozen=True, kw_only=True):
    """`have` of `total` bytes of this `stage`, now those of `file`; `share` (0 to 1) or `percent` of the whole
    job is done. The rate and the seconds left are None until they are known."""

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
    """Nothing arrives at the moment; the job continues by itself in `seconds`."""

    sentence: str
    seconds: float


class Done(JobEvent, frozen=True, kw_only=True):
    """The job succeeded; kinds of jobs add what came of it."""

    sentence: str = ""


class Failed(JobEvent, frozen=True, kw_only=True):
    """What has arrived is kept; `sentence` says why it failed and what to do. `model` is the one that was
    wanted, if any."""

    sentence: str
    model: str = ""


Read = Progress | Waiting | Done | Failed


def read(line: bytes) -> Read | None:
    """The event of a line; None for a line that holds no Progress, Waiting, Done or Failed."""
    try:
        return msgspec.json.decode(line, type=Read)
    except msgspec.MsgspecError:
        return None


Tell = Callable[[JobEvent], None]


class Reporter:
    """Tells how far a download is, with its rate, no more often than every TELL_S."""

    def __init__(self, tell: Tell) -> None:
        self._tell, self._speed, self._last = tell, TransferSpeed(), 0.0

    def progress(self, have: int, total: int, file: str = "", at_once: bool = False) -> None:
        """`have` of `total` bytes are on the disk. `at_once`: however short a time ago the last report was."""
        now = time.monotonic()
        if not at_once and now - self._last < TELL_S and have < total:
            return
        self._last = now
        per_second, left_s = self._speed.at(have, total)
        self._tell(Progress(have=have, total=total, file=file, per_second=per_second, left_s=left_s))

    def waiting(self, sentence: str, seconds: float) -> None:
        self._tell(Waiting(sentence=sentence, seconds=seconds))
        self._speed.restart()
