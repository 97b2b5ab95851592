"""The owner's orders to the node: pause, snooze, finish, learn anyway. They outlive a restart and are kept
apart from the settings."""

from __future__ import annotations

import contextlib
import math
import os
import time
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import msgspec

from app.desktop.facts import steady_s

LONGEST_SNOOZE_S = 31 * 24 * 3600.0
_MORNING = 8
_NIGHT_ENDS = 4


class Moment(msgspec.Struct, frozen=True):
    """The present on two clocks: `wall` (seconds since 1970) may be set forward and back, `steady` may not.
    `zone` None is the system's time zone."""

    wall: float
    steady: float
    zone: tzinfo | None = None

    @classmethod
    def now(cls) -> Moment:
        return cls(time.time(), steady_s())

    @property
    def local(self) -> datetime:
        return datetime.fromtimestamp(self.wall, self.zone)

    def shown(self, wall: float) -> str:
        """A moment as clock time, with the weekday unless it is today, or with the date in another week."""
        then, today = datetime.fromtimestamp(wall, self.zone), datetime.fromtimestamp(self.wall, self.zone)
        if abs((then.date() - today.date()).days) > 6:
            return f"{then.day} {then:%b}"
        return then.strftime("%H:%M" if then.date() == today.date() else "%a %H:%M")


class Snooze(msgspec.Struct, frozen=True):
    """An order that ends by itself, for example a snooze: its start and its end, both in seconds since 1970 by
    the clock at the time of the order."""

    began: float
    until: float

    def left_s(self, wall: float) -> float:
        """Seconds left at `wall`, 0 when it is over. Never more than its whole length, however far the clock
        has been set back since; impossible values count as over.
        """
        length = self.until - self.began
        if not (math.isfinite(self.began) and 0 < length < math.inf):
            return 0.0
        return min(max(0.0, self.until - wall), length, LONGEST_SNOOZE_S)


SERVING_FILE = "serving"
"""A file in the data folder, touched while another program's request is answered (app.serve)."""
_SERVED_S = 2.0
"""Seconds after the file's last touch during which learning gives way, even if the server was killed."""


def show_serving(home: Path) -> None:
    """Makes a node of this data folder give way for the next two seconds."""
    now = time.time()
    with contextlib.suppress(OSError):  # learning then goes on beside it
        (home / SERVING_FILE).touch()
        os.utime(home / SERVING_FILE, (now, now))


def serving(home: Path) -> bool:
    """Whether another program's request is being answered from this data folder."""
    try:
        return abs(time.time() - (home / SERVING_FILE).stat().st_mtime) < _SERVED_S
    except OSError:
        return False


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """`finish`: end the round in flight, then pause."""

    paused: bool = False
    finish: bool = False
    snooze: Snooze | None = None
    insisted: Snooze | None = None
    """While this lasts the node learns whatever else runs on the computer."""

    def round_finished(self) -> Orders:
        """Call this after every round: "finish" becomes "paused"."""
        return Orders(paused=True, snooze=self.snooze) if self.finish else self


def snooze_for(seconds: float, now: Moment) -> Snooze:
    """A snooze of this length. Raises ValueError if it is not positive or longer than 31 days."""
    if not 0 < seconds <= LONGEST_SNOOZE_S:
        raise ValueError("A snooze lasts between a second and 31 days.")
    return Snooze(now.wall, now.wall + seconds)


def snooze_until_tomorrow(now: Moment) -> Snooze:
    """A snooze until the next eight in the morning (for somebody still up at night, that is today's)."""
    shown = datetime.fromtimestamp(now.wall, now.zone)
    day = shown if shown.hour < _NIGHT_ENDS else shown + timedelta(days=1)
    return Snooze(now.wall, day.replace(hour=_MORNING, minute=0, second=0, microsecond=0, fold=0).timestamp())
