"""Weekdays, leap years and numbers of days."""

from __future__ import annotations

import re

from app.sapo import reading
from app.sapo.families import scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind

_COUNTED = ("count_days", "count_business_days", "recurring_event_day")


_DAY = re.compile(r"\b([0-9]{2})/([0-9]{2})/[0-9]{4}")


def _score(answer: str, entry: Entry) -> float:
    """1 for the truth: a number for the counting tasks, else the weekday's full name or Yes or No in any case.
    The library would pay numbers by how near they are."""
    if entry["metadata"]["task"] in _COUNTED:
        return scores.integer(answer, entry)
    return float(answer.isascii() and answer.strip(reading.SPACE).lower() == entry["answer"].lower())


def _wording(entry: Entry) -> str:
    return re.sub(r"\b1 days\b", "1 day", str(entry["question"]))


def _sound(entry: Entry) -> bool:
    """Whether the question says all that its truth needs.

    Half of count_business_days ends in the year after the one the question prints. And "if January 1 was a
    Monday" without a year leaves dates after February open: the year may be a leap year. 01/06/2022 is a day of
    January or of June."""
    metadata = entry["metadata"]
    if (day := _DAY.search(entry["question"])) and day[1] != day[2] and day[2] <= "12":
        return False
    if metadata["task"] == "count_business_days":
        return str(metadata["start_date"])[:4] == str(metadata["end_date"])[:4]
    if metadata["task"] == "weekday_of_date_from_first_date":
        return str(metadata["target_date"])[5:7] in ("01", "02")
    return True


def _content(entry: Entry) -> Content:
    """The task, its dates and its result, whatever the words and the form of a date; days forward or back where
    both come to the same."""
    metadata = entry["metadata"]
    told = ["start_date", "end_date", "first_day", "month", "ordinal", "weekday"]
    told += ["target_date"] * ("offset_days" not in metadata) + ["year"] * (metadata["task"] == "is_leap_year")
    days = abs(metadata.get("offset_days", 0))
    return metadata["task"], days, *(str(metadata.get(name, "")) for name in told), entry["answer"]


FAMILY = Family(
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
    content=_content,
    wording=_wording,
    score=_score,
    sound=_sound,
    paper=True,
)
