"""Dates and times of day."""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from app.sapo import library, reading
from app.sapo.families import scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind

# Weekdays, leap years and numbers of days.

_COUNTED = ("count_days", "count_business_days", "recurring_event_day")


_DAY = re.compile(r"\b([0-9]{2})/([0-9]{2})/[0-9]{4}")


def _calendar_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the true answer: a number for the counting tasks, else the weekday's full name or Yes or No
    in any case. The library would pay numbers by how near they are."""
    if entry["metadata"]["task"] in _COUNTED:
        return scores.integer(answer, entry)
    return float(answer.isascii() and answer.strip(reading.SPACE).lower() == entry["answer"].lower())


def _calendar_wording(entry: Entry) -> str:
    return re.sub(r"\b1 days\b", "1 day", str(entry["question"]))


def _calendar_sound(entry: Entry) -> bool:
    """Whether the question determines its answer. Half of count_business_days ends in the year after the one
    printed. "If January 1 was a Monday" without a year leaves dates after February open, because of leap years.
    01/06/2022 is a day of January or of June."""
    metadata = entry["metadata"]
    if (day := _DAY.search(entry["question"])) and day[1] != day[2] and day[2] <= "12":
        return False
    if metadata["task"] == "count_business_days":
        return str(metadata["start_date"])[:4] == str(metadata["end_date"])[:4]
    if metadata["task"] == "weekday_of_date_from_first_date":
        return str(metadata["target_date"])[5:7] in ("01", "02")
    return True


def _calendar_content(entry: Entry) -> Content:
    """Returns the task, its dates and its result, independent of words and date formats; days forward and back
    are the same if the result is."""
    metadata = entry["metadata"]
    told = ["start_date", "end_date", "first_day", "month", "ordinal", "weekday"]
    told += ["target_date"] * ("offset_days" not in metadata) + ["year"] * (metadata["task"] == "is_leap_year")
    days = abs(metadata.get("offset_days", 0))
    return metadata["task"], days, *(str(metadata.get(name, "")) for name in told), entry["answer"]


CALENDAR_ARITHMETIC = Family(
    name="calendar_arithmetic",
    title="Calendar",
    kind=FamilyKind.TIME,
    levels=(
        dict(tasks=["weekday_offset", "weekday_of_date"], offset_upper_bound=14),
        dict(
            tasks=["weekday_offset", "weekday_of_date", "is_leap_year", "count_days"],
            offset_upper_bound=100,
        ),
        dict(offset_upper_bound=365),
    ),
    content=_calendar_content,
    wording=_calendar_wording,
    score=_calendar_score,
    sound=_calendar_sound,
    guess=(0.21, "the last word"),
)


# The time between two times or two dates.

_TIME = re.compile(r"[0-9]{2}:[0-9]{2}(?::[0-9]{2})?")
_CLOCK = re.compile(r"[0-9]{1,3}:[0-9]{2}(?::[0-9]{2})?")
_DAYS = re.compile(r"([0-9]{1,6})(?: days?)?")
_EITHER_WAY = "%m/%d/%Y"
_TODAY = slice(len("2024-01-15 "))


class _Day(date):
    """A date whose day and month names are English in every locale."""

    def strftime(self, form: str, /) -> str:
        """
        >>> _Day(2024, 1, 15).strftime("%A, %B %d, %Y (%a %b)")
        'Monday, January 15, 2024 (Mon Jan)'
        """
        day, month = _DAY_NAMES[self.weekday()], _MONTHS[self.month - 1]
        for sign, name in (("%A", day), ("%a", day[:3]), ("%B", month), ("%b", month[:3])):
            form = form.replace(sign, name)
        return super().strftime(form)


_DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


class _Spans:
    """Generates the library's items independent of the current day, and in English in every locale."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.seed = 0
        self._library = library.gym().create_dataset(
            "time_intervals", seed=0, size=1, min_date=_Day(1900, 1, 1), max_date=_Day(3000, 1, 1), **settings
        )

    def __getitem__(self, index: int) -> Entry:
        while True:
            self._library.seed = self.seed
            entry: dict[str, Any] = self._library[index]
            metadata = entry["metadata"]
            if _is_date(entry):
                return entry
            start, end = metadata["start_time"], metadata["end_time"]
            if start[_TODAY] == end[_TODAY]:  # else it struck midnight between them
                times = {"start_time": start[_TODAY.stop :], "end_time": end[_TODAY.stop :]}
                return {**entry, "metadata": {**metadata, **times}}


def _clock(text: str) -> list[int]:
    return [int(part) for part in text.split(":")]


def _dates(entry: Entry) -> tuple[date, date]:
    start, end = (_Day.fromisoformat(entry["metadata"][end][:10]) for end in ("start_time", "end_time"))
    return start, end


def _between(entry: Entry) -> list[int]:
    """Returns hours, minutes and, if they are asked for, seconds between the times of the question."""
    start, end = (_clock(time) for time in _TIME.findall(entry["question"]))
    left, parts = _seconds(end) - _seconds(start), []
    for size in (3600, 60, 1)[: len(start)]:
        parts.append(left // size)
        left %= size
    return parts


def _seconds(clock: list[int]) -> int:
    return sum(part * size for part, size in zip(clock, (3600, 60, 1), strict=False))


def _is_date(entry: Entry) -> bool:
    return str(entry["metadata"]["task_type"]) == "date"


def _interval_solution(entry: Entry) -> str:
    if _is_date(entry):
        start, end = _dates(entry)
        return f"{(end - start).days} days"
    return ":".join(f"{part:02}" for part in _between(entry))


def _interval_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the true answer: days with or without the word, times in the requested form. The library
    pays for being near it."""
    answer = answer.strip(reading.SPACE)
    if _is_date(entry):
        days = _DAYS.fullmatch(answer)
        start, end = _dates(entry)
        return float(days is not None and int(days[1]) == (end - start).days)
    if not _CLOCK.fullmatch(answer):
        return 0.0
    return float(_clock(answer) == _between(entry))


def _interval_sound(entry: Entry) -> bool:
    """Whether the answer follows from the question. A time that ends at midnight would end before it begins,
    and dates such as 03/04/2024 are ambiguous."""
    return (_one_reading(entry) if _is_date(entry) else _forward(entry)) and _interval_solution(entry) == entry[
        "answer"
    ]


def _one_reading(entry: Entry) -> bool:
    form, dates = entry["metadata"]["format"], _dates(entry)
    shown = all(day.strftime(form) in entry["question"] for day in dates)
    return shown and (form != _EITHER_WAY or all(day.day > 12 for day in dates))


def _forward(entry: Entry) -> bool:
    times = _TIME.findall(entry["question"])
    return len(times) == 2 and times[0] <= times[1]


def _interval_work(entry: Entry) -> str:
    return _days_work(*_dates(entry)) if _is_date(entry) else _clock_work(entry)


def _days_work(start: date, end: date) -> str:
    """Returns the work: the days left in the first month, then the whole months, then the days of the last."""
    if (start.year, start.month) == (end.year, end.month):
        return f"{end.day} - {start.day} = {end.day - start.day}."
    length = calendar.monthrange(start.year, start.month)[1]
    parts = [length - start.day]
    year, month = start.year, start.month
    while (year, month) != (end.year, end.month):
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        parts.append(end.day if (year, month) == (end.year, end.month) else calendar.monthrange(year, month)[1])
    return f"{length} - {start.day} = {parts[0]}. {' + '.join(map(str, parts))} = {sum(parts)}."


def _clock_work(entry: Entry) -> str:
    """Returns the work from the smallest unit up, borrowing from the next unit if one is too small."""
    start, end = (_clock(time) for time in _TIME.findall(entry["question"]))
    steps, taken = [], 0
    for place in reversed(range(len(start))):
        less = f" - {taken}" if taken else ""
        part = end[place] - start[place] - taken
        steps.append(f"{end[place]} - {start[place]}{less} = {part}.")
        taken = int(part < 0)
        if taken:
            steps.append(f"{part} + 60 = {part + 60}.")
    return " ".join(steps)


def _interval_content(entry: Entry) -> Content:
    """Returns the two days, or the two times of day to the unit asked for, independent of their format."""
    if _is_date(entry):
        return tuple(day.isoformat() for day in _dates(entry))
    return tuple(":".join(time.split(":")[: len(_between(entry))]) for time in _TIME.findall(entry["question"]))


TIME_INTERVALS = Family(
    name="time_intervals",
    title="Time spans",
    kind=FamilyKind.TIME,
    levels=(
        dict(task_types=["time"], max_time_difference_seconds=3600),
        dict(task_types=["time"], max_time_difference_seconds=6 * 3600),
        dict(
            task_types=["time", "time_seconds", "date"],
            max_time_difference_seconds=24 * 3600,
            max_date_difference_days=60,
        ),
        dict(
            task_types=["time_seconds", "date"],
            max_time_difference_seconds=24 * 3600,
            max_date_difference_days=365,
        ),
    ),
    opened=_Spans,
    content=_interval_content,
    score=_interval_score,
    sound=_interval_sound,
    solution=_interval_solution,
    work=_interval_work,
)
