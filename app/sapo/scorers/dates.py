"""Calendar questions: a weekday, yes or no, or a number of days."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.sapo.scorers import arithmetic, reading

_COUNTED = ("count_days", "count_business_days", "recurring_event_day")


def calendar(answer: str, entry: Mapping[str, Any]) -> float:
    """1 for the truth: a number for the counting tasks, else the weekday's full name or Yes or No in any case.
    The library would pay numbers by how near they are."""
    if entry["metadata"]["task"] in _COUNTED:
        return arithmetic.integer(answer, entry)
    return float(answer.isascii() and answer.strip(reading.SPACE).lower() == entry["answer"].lower())


def sound_calendar(entry: Mapping[str, Any]) -> bool:
    """Whether the question says all that its truth needs.

    Half of count_business_days ends in the year after the one the question prints. And "if January 1 was a
    Monday" without a year leaves dates after February open: the year may be a leap year."""
    metadata = entry["metadata"]
    if metadata["task"] == "count_business_days":
        return str(metadata["start_date"])[:4] == str(metadata["end_date"])[:4]
    if metadata["task"] == "weekday_of_date_from_first_date":
        return str(metadata["target_date"])[5:7] in ("01", "02")
    return True
