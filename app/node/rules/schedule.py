"""The hours in which a node may run: windows on weekdays, as the clock on the wall shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo

import msgspec

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_MIN = 24 * 60
_WINDOW = re.compile(r"([a-z]{3})(?:-([a-z]{3}))?\s+(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})")


class ScheduleWindow(msgspec.Struct, frozen=True):
    """From `start` to before `end`, in minutes after midnight, on the weekdays `days` (0 is Monday).

    An end at or before the start lies on the next day: the window belongs to the day on which it begins. Raises
    ValueError for anything that is no window.
    """

    days: tuple[int, ...]
    start: int
    end: int

    def __post_init__(self) -> None:
        if not self.days or not all(0 <= day < 7 for day in self.days):
            raise ValueError("A window needs at least one weekday.")
        if not (0 <= self.start < _DAY_MIN and 0 <= self.end <= _DAY_MIN):
            raise ValueError("A window begins and ends between 00:00 and 24:00.")

    def holds(self, day: int, minute: int) -> bool:
        if self.start < self.end:
            return day in self.days and self.start <= minute < self.end
        return (day in self.days and minute >= self.start) or ((day - 1) % 7 in self.days and minute < self.end)


class Schedule(msgspec.Struct, frozen=True):
    """Open while any window holds. Without windows it is always open."""

    windows: tuple[ScheduleWindow, ...] = ()

    def open(self, wall: float, zone: tzinfo | None = None) -> bool:
        """Whether it is open at `wall` (seconds since 1970); `zone` None is the system's. What counts is what
        the clock shows: an hour that it shows twice is open twice, one that it skips never."""
        if not self.windows:
            return True
        shown = datetime.fromtimestamp(wall, zone)
        minute = shown.hour * 60 + shown.minute
        return any(window.holds(shown.weekday(), minute) for window in self.windows)

    def next_change(self, wall: float, zone: tzinfo | None = None) -> float | None:
        """When it next opens or closes, seconds since 1970; None if it does not within eight days."""
        now = self.open(wall, zone)
        for moment in sorted(self._moments(wall, zone)):
            if moment > wall and self.open(moment, zone) is not now:
                return moment
        return None

    def _moments(self, wall: float, zone: tzinfo | None) -> Iterable[float]:
        """All moments at which something may change: what the windows name, each as often as the clock shows
        it, and where the clock is put forward or back."""
        minutes = {window.start for window in self.windows} | {window.end % _DAY_MIN for window in self.windows}
        midnight = datetime.fromtimestamp(wall, zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        for day in range(9 if self.windows else 0):
            date = midnight + timedelta(days=day)
            for minute in {0, *minutes}:
                shown = date + timedelta(minutes=minute)
                yield from {shown.replace(fold=fold).timestamp() for fold in (0, 1)}
            shifted = _clock_change(date.timestamp(), (date + timedelta(days=1)).timestamp(), zone)
            if shifted is not None:
                yield shifted


def _ahead_s(wall: float, zone: tzinfo | None) -> float:
    """How far the shown clock is ahead of UTC."""
    shown = datetime.fromtimestamp(wall, zone).replace(tzinfo=UTC)
    return (shown - datetime.fromtimestamp(wall, UTC)).total_seconds()


def _clock_change(begin: float, end: float, zone: tzinfo | None) -> float | None:
    """The moment between the two at which the clock is put forward or back, to the second."""
    before, after = int(begin), int(end)
    first = _ahead_s(before, zone)
    if _ahead_s(after, zone) == first:
        return None
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (middle, after) if _ahead_s(middle, zone) == first else (before, middle)
    return float(after)


def parse(text: str) -> Schedule:
    """A schedule as its owner writes it; nothing at all means always. Raises ValueError with a sentence.

    >>> parse("mon-fri 22:00-07:00, sat 00:00-24:00").windows[1]
    ScheduleWindow(days=(5,), start=0, end=1440)
    """
    windows = []
    for part in filter(None, map(str.strip, text.lower().split(","))):
        found = _WINDOW.fullmatch(part)
        if not found or found[1] not in DAYS or (found[2] or "mon") not in DAYS:
            raise ValueError(f"{part!r} is no window of time; write it like mon-fri 22:00-07:00.")
        first, last = DAYS.index(found[1]), DAYS.index(found[2] or found[1])
        days = tuple(sorted((first + step) % 7 for step in range((last - first) % 7 + 1)))
        (start_h, start_min), (end_h, end_min) = map(int, found.group(3, 4)), map(int, found.group(5, 6))
        if start_min > 59 or end_min > 59:
            raise ValueError(f"{part!r} has more than 59 minutes in an hour.")
        windows.append(ScheduleWindow(days, start_h * 60 + start_min, end_h * 60 + end_min))
    return Schedule(tuple(windows))


def written(schedule: Schedule) -> str:
    """The text that `parse` reads as this schedule.

    >>> written(parse("sun-tue 9:00-17:30"))
    'mon-tue 09:00-17:30, sun 09:00-17:30'
    """
    return ", ".join(
        f"{days} {window.start // 60:02}:{window.start % 60:02}-{window.end // 60:02}:{window.end % 60:02}"
        for window in schedule.windows
        for days in _runs(sorted(set(window.days)))
    )


def _runs(days: list[int]) -> list[str]:
    """Weekdays in a row as first-last."""
    runs: list[list[int]] = []
    for day in days:
        if runs and runs[-1][-1] == day - 1:
            runs[-1].append(day)
        else:
            runs.append([day])
    return [DAYS[run[0]] if len(run) == 1 else f"{DAYS[run[0]]}-{DAYS[run[-1]]}" for run in runs]
