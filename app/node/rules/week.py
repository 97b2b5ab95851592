"""A schedule as the minutes of one week, which is how it is painted; app.node.rules.schedule has it as windows
of time, which is how it is written and kept."""

from __future__ import annotations

from app.node.rules.schedule import Schedule, ScheduleWindow, parse, written

DAY, HOUR = 24 * 60, 60
DAYS, HOURS = 7, 24


class Week:
    """Open minutes, from Monday 00:00 on. A week with none is a schedule without windows, and that is open at
    any time: `always`."""

    def __init__(self, text: str = "") -> None:
        """Raises ValueError for what app.node.rules.schedule cannot read."""
        self._open = bytearray(DAYS * DAY)
        for window in parse(text).windows:
            length = (window.end - window.start) % DAY or DAY
            for day in window.days:
                for minute in range(day * DAY + window.start, day * DAY + window.start + length):
                    self._open[minute % len(self._open)] = 1

    def copy(self) -> Week:
        made = Week()
        made._open[:] = self._open
        return made

    @property
    def always(self) -> bool:
        return not any(self._open)

    @property
    def minutes(self) -> int:
        """How many are open in a week."""
        return sum(self._open)

    def share(self, day: int, hour: int) -> float:
        """How much of one hour is open, in [0, 1]."""
        start = day * DAY + hour * HOUR
        return sum(self._open[start : start + HOUR]) / HOUR

    def full(self, days: range, hours: range) -> bool:
        """Whether all of these hours are open from end to end."""
        return all(self.share(day, hour) == 1 for day in days for hour in hours)

    def fill(self, days: range, hours: range, on: bool) -> None:
        """Opens or closes whole hours."""
        for day in days:
            start, end = day * DAY + hours.start * HOUR, day * DAY + hours.stop * HOUR
            self._open[start:end] = bytes([on]) * (end - start)

    def spread(self, day: int) -> None:
        """Makes every weekday like this one."""
        self._open[:] = self._open[day * DAY : (day + 1) * DAY] * DAYS

    def text(self) -> str:
        """The schedule that is open in just these minutes: nights are one window, days alike are one entry.

        >>> Week("mon 22:00-24:00, tue 0:00-7:00, tue 22:30-24:00").text()
        'mon 22:00-07:00, tue 22:30-24:00'
        """
        days: dict[tuple[int, int], list[int]] = {}
        for start, length in self._runs():
            while length:
                day, minute = divmod(start % (DAYS * DAY), DAY)
                night = minute > 0 and DAY - minute < length <= DAY
                taken = length if night else min(length, DAY - minute)
                end = (minute + taken) % DAY if night else minute + taken
                days.setdefault((minute, end), []).append(day)
                start, length = start + taken, length - taken
        ordered = sorted(days.items(), key=lambda item: (min(item[1]), item[0]))
        return written(Schedule(tuple(ScheduleWindow(tuple(sorted(on)), *span) for span, on in ordered)))

    def _runs(self) -> list[tuple[int, int]]:
        """Where it opens and for how long; one that lasts over Sunday's midnight is one."""
        size = len(self._open)
        if all(self._open):
            return [(0, size)]
        opens = [at for at in range(size) if self._open[at] and not self._open[at - 1]]
        return [(at, next(n for n in range(size) if not self._open[(at + n) % size])) for at in opens]
