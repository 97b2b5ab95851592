"""Times between: forms that are right, forms that are not, and what follows from the question."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["time_intervals"]


def clock(start: str, end: str, answer: str) -> dict[str, object]:
    question = f"A call began at {start} and ended at {end}. Answer in HH:MM."
    return {"question": question, "answer": answer, "metadata": {"task_type": "time"}}


def days(start: str, end: str, answer: str, form: str = "%Y-%m-%d", shown: str = "") -> dict[str, object]:
    metadata = {
        "task_type": "date",
        "format": form,
        "start_time": f"{start} 00:00:00",
        "end_time": f"{end} 00:00:00",
    }
    return {"question": shown or f"From {start} to {end}.", "answer": answer, "metadata": metadata}


CALL = clock("17:59", "19:20", "01:21")
SPRING = days("2024-02-25", "2024-03-30", "34 days")


@pytest.mark.parametrize("text", ["01:21", "1:21", "001:21", " 01:21\n"])
def test_hours_and_minutes_are_right(text: str) -> None:
    assert FAMILY.judge(text, CALL) == 1.0


@pytest.mark.parametrize(
    "text", ["81", "00:81", "01:21:00", "1h21", "1.21", "01:22", "-01:21", "01 : 21", "0121", ""]
)
def test_other_times_and_forms_are_wrong(text: str) -> None:
    assert FAMILY.judge(text, CALL) == 0.0


@pytest.mark.parametrize(("text", "score"), [("01:21:00", 0), ("01:20:59", 1), ("1:20:59", 1), ("01:20", 0)])
def test_seconds_are_asked_for_or_not(text: str, score: int) -> None:
    assert FAMILY.judge(text, clock("17:59:01", "19:20:00", "01:20:59")) == score


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("34 days", 1),
        ("34", 1),
        ("034 days", 1),
        ("34 day", 1),
        ("35 days", 0),
        ("34 days, 00:00", 0),
        ("+34", 0),
    ],
)
def test_days(text: str, score: int) -> None:
    assert FAMILY.judge(text, SPRING) == score


def test_a_time_that_ends_at_midnight_and_a_false_truth_are_no_questions() -> None:
    assert FAMILY.sound(CALL)
    assert not FAMILY.sound(clock("17:59", "19:20", "01:22"))
    assert not FAMILY.sound(clock("23:10", "00:00", "-24:50"))


def test_a_date_with_two_readings_is_no_question() -> None:
    american = {"form": "%m/%d/%Y", "start": "2024-03-15", "end": "2024-03-31", "answer": "16 days"}
    assert FAMILY.sound(SPRING)
    assert FAMILY.sound(days(**american, shown="03/15/2024 to 03/31/2024"))
    early = {**american, "start": "2024-03-04", "answer": "27 days"}
    assert not FAMILY.sound(days(**early, shown="03/04/2024 to 03/31/2024"))
    assert not FAMILY.sound(days(**american, shown="15/03/2024 to 31/03/2024"))


def test_the_work_takes_one_of_the_next_unit_where_it_must() -> None:
    assert FAMILY.worked(clock("13:02", "17:41", "04:39")) == "41 - 2 = 39. 17 - 13 = 4. #04:39"
    assert FAMILY.worked(CALL) == "20 - 59 = -39. -39 + 60 = 21. 19 - 17 - 1 = 1. #01:21"
    seconds = clock("10:59:59", "12:00:00", "01:00:01")
    assert (
        FAMILY.worked(seconds)
        == "0 - 59 = -59. -59 + 60 = 1. 0 - 59 - 1 = -60. -60 + 60 = 0. 12 - 10 - 1 = 1. #01:00:01"
    )


def test_the_work_counts_days_month_by_month() -> None:
    assert FAMILY.worked(SPRING) == "29 - 25 = 4. 4 + 30 = 34. #34 days"
    assert (
        FAMILY.worked(days("2023-11-20", "2024-01-05", "46 days")) == "30 - 20 = 10. 10 + 31 + 5 = 46. #46 days"
    )
    assert FAMILY.worked(days("2023-11-02", "2023-11-05", "3 days")) == "5 - 2 = 3. #3 days"
