"""Collects all desktop facts without blocking: every source is read in its own thread."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from app.desktop.choose import sources
from app.desktop.facts import FACT_NAMES, Absent, DesktopFacts, FactSource, SourceError, Value, steady_s

PERIODS_S: Mapping[str, float] = {
    "idle_s": 1.0,
    "on_battery": 2.0,
    "saver": 4.0,
    "full_screen": 2.0,
    "cpu_others": 1.5,
    "gpu_others": 1.5,
    "memory_free": 2.0,
    "memory_stalled": 2.0,
    "temperature_c": 3.0,
    "too_hot": 3.0,
}
"""Seconds between two readings of each fact, short enough that the user gets the computer back within five
seconds."""
TIME_OUT_S = 2.5
"""Seconds after which a source without an answer counts as unknown until it answers."""
_LATE_S = 10.0
"""The same for a source that has answered before. On a busy computer each is late now and then, and one unknown
fact ends the trainer with all that its round has done, a lesson of many minutes for example."""
_HANGS_S = 60.0
"""Seconds after which a source without an answer is reported; on a busy computer a source is late now and
then."""
_MAX_TOLD = 8


class FactRow(msgspec.Struct, frozen=True, kw_only=True):
    """One fact for `doctor` and the diagnostics. `why` says why it is unknown; "" if it is known."""

    field: str
    source: str
    value: Value | None
    absent: bool
    why: str


class Gatherer:
    """Collects the facts from all sources. Not thread-safe; call `close` when done.

    `tell` is called with a sentence when a fact cannot be read, once per sentence and source."""

    def __init__(
        self,
        tell: Callable[[str], None] = lambda sentence: None,
        chosen: Mapping[str, FactSource] | None = None,
        clock: Callable[[], float] = steady_s,
        time_out_s: float = TIME_OUT_S,
    ) -> None:
        self._clock = clock
        if chosen is None:
            chosen = sources(sys.platform, os.environ)
        self._askers = [_Asker(field, source, tell, time_out_s) for field, source in chosen.items()]

    def start(self, wait_s: float = 2.0) -> None:
        """Reads all sources and waits until all have answered, at most `wait_s` seconds; usually about half a
        second. Without this call the first facts are unknown, which counts as in use."""
        end = time.monotonic() + wait_s
        while True:
            self.gather()
            if all(asker.answered for asker in self._askers) or time.monotonic() >= end:
                return
            time.sleep(0.01)

    def gather(self) -> DesktopFacts:
        """Returns the facts as last read, without waiting; takes well under a millisecond."""
        now = self._clock()
        values: dict[str, Any] = {}
        absent: set[str] = set()
        for asker in self._askers:
            value = asker.value(now)
            if isinstance(value, Absent):
                absent.add(asker.field)
            else:
                values[asker.field] = value
        return DesktopFacts(**values, absent=frozenset(absent))

    def rows(self) -> tuple[FactRow, ...]:
        """Returns each fact with its source, in the order of the fields."""
        rows = {asker.field: asker.row(self._clock()) for asker in self._askers}
        return tuple(rows[field] for field in FACT_NAMES if field in rows)

    def close(self) -> None:
        """Stops the threads. One that is stuck in its source ends only with the process."""
        for asker in self._askers:
            asker.close()


class _Asker:
    """One source with its thread and its last answer."""

    def __init__(self, field: str, source: FactSource, tell: Callable[[str], None], time_out_s: float) -> None:
        self.field = field
        self.answered = False
        self._source = source
        self._tell = tell
        self._time_out_s = time_out_s
        self._told: set[str] = set()
        self._asked_at: float | None = None
        self._due_at = float("-inf")
        self._known: Value | Absent | None = None
        self._why = "It hasn't been asked yet."
        self._answer: tuple[Value | Absent | None, str] | None = None
        self._closing = False
        self._ask = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._serve, name=f"fact {field}", daemon=True)
        self._thread.start()

    def value(self, now: float) -> Value | Absent | None:
        """Returns the latest answer, None before the first. Starts the next reading when it is due."""
        answer, self._answer = self._answer, None
        if answer is not None:
            self._known, self._why = answer
            self._asked_at, self.answered = None, True
            if self._why:
                self._say(f"Shoal can't find out the {self._source.name}: {self._why}")
        elif self._asked_at is not None and now - self._asked_at > (
            patience := self._time_out_s if self._known is None else max(_LATE_S, self._time_out_s)
        ):
            self._known, self._why = None, f"It hasn't answered for {patience:g} s."
            if now - self._asked_at > max(_HANGS_S, self._time_out_s):
                self._say(
                    f"Shoal can't find out the {self._source.name}: It hasn't answered for {_HANGS_S:g} s."
                )
        if self._asked_at is None and now >= self._due_at:
            self._asked_at, self._due_at = now, now + PERIODS_S.get(self.field, 2.0)
            self._ask.release()
        return self._known

    def row(self, now: float) -> FactRow:
        value = self.value(now)
        absent = isinstance(value, Absent)
        return FactRow(
            field=self.field,
            source=self._source.name,
            value=None if isinstance(value, Absent) else value,
            absent=absent,
            why=self._why if value is None else "",
        )

    def close(self) -> None:
        self._closing = True
        self._ask.release()

    def _say(self, sentence: str) -> None:
        if sentence not in self._told and len(self._told) < _MAX_TOLD:
            self._told.add(sentence)
            self._tell(sentence)

    def _serve(self) -> None:
        while True:
            self._ask.acquire()
            if self._closing:
                return
            try:
                self._answer = (self._source.read(), "")
            except SourceError as error:
                self._answer = (None, str(error))
            except Exception as error:  # whatever a system's library throws, the fact is unknown, no more
                self._answer = (None, f"{type(error).__name__}: {error}")
