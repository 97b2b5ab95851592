"""The owner's orders to the node: pause, snooze, finish, learn anyway. They survive a restart and are stored
separately from the settings."""

from __future__ import annotations

import contextlib
import math
import os
import time
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import msgspec

from app.desktop.facts import steady_s

LONGEST_SNOOZE_S = 31 * 24 * 3600.0  # a month; a longer pause is a pause without an end
_MORNING = 8  # o'clock
_NIGHT_ENDS = 4  # o'clock; before it "tomorrow" is the morning to come


class Moment(msgspec.Struct, frozen=True):
    """The present on two clocks: `wall` (Unix time) can be set, `steady` is monotonic. `zone` None means the
    system's time zone."""

    wall: float
    steady: float
    zone: tzinfo | None = None

    @classmethod
    def now(cls) -> Moment:
        return cls(time.time(), steady_s())

    @property
    def local(self) -> datetime:
        return datetime.fromtimestamp(self.wall, self.zone)

    def format_time(self, wall: float) -> str:
        """Formats a moment as clock time, with the weekday unless it is today, or as a date if it is in another
        week."""
        then, today = datetime.fromtimestamp(wall, self.zone), datetime.fromtimestamp(self.wall, self.zone)
        if abs((then.date() - today.date()).days) > 6:
            return f"{then.day} {then:%b}"
        return then.strftime("%H:%M" if then.date() == today.date() else "%a %H:%M")


class Snooze(msgspec.Struct, frozen=True):
    """An order that ends by itself: a snooze, or to learn anyway. Start and end are Unix times by the clock at
    the time of the order."""

    began: float
    until: float

    def left_s(self, wall: float) -> float:
        """Returns the seconds left at `wall`, 0 when it is over. Never more than its whole length, even if the
        clock was set back; invalid values count as over."""
        length = self.until - self.began
        if not (math.isfinite(self.began) and 0 < length < math.inf):
            return 0.0
        return min(max(0.0, self.until - wall), length, LONGEST_SNOOZE_S)


SERVING_FILE = "serving"
"""File in the data folder that is touched while a request of another program is answered (app.serve)."""
_SERVED_S = 2.0
"""Seconds after the last touch of the file during which training gives way, even if the server was killed."""


def mark_serving(home: Path) -> None:
    """Makes a node of this data folder give way for the next two seconds."""
    now = time.time()
    with contextlib.suppress(OSError):  # a full disk: learning then continues meanwhile
        (home / SERVING_FILE).touch()
        os.utime(home / SERVING_FILE, (now, now))


def serving(home: Path) -> bool:
    """Whether a request of another program is being answered from this data folder."""
    try:
        return abs(time.time() - (home / SERVING_FILE).stat().st_mtime) < _SERVED_S
    except OSError:
        return False


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """The owner's current orders. `finish`: end the round in flight, then pause."""

    paused: bool = False
    finish: bool = False
    snooze: Snooze | None = None
    insisted: Snooze | None = None
    """Until this ends the node trains regardless of other use of the computer."""

    def round_finished(self) -> Orders:
        """Returns the orders after a round: "finish" becomes "paused"."""
        return Orders(paused=True, snooze=self.snooze) if self.finish else self


def snooze_for(seconds: float, now: Moment) -> Snooze:
    """Returns a snooze of `seconds`. Raises ValueError if it is not positive or longer than 31 days."""
    if not 0 < seconds <= LONGEST_SNOOZE_S:
        raise ValueError("A snooze lasts between a second and 31 days.")
    return Snooze(now.wall, now.wall + seconds)


def snooze_until_tomorrow(now: Moment) -> Snooze:
    """Returns a snooze until the next eight in the morning, which before 4 a.m. is today's."""
    shown = datetime.fromtimestamp(now.wall, now.zone)
    day = shown if shown.hour < _NIGHT_ENDS else shown + timedelta(days=1)
    return Snooze(now.wall, day.replace(hour=_MORNING, minute=0, second=0, microsecond=0, fold=0).timestamp())
