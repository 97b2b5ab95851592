"""A schedule as painted minutes: whatever is written is painted, and what is painted is written back."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from app.node.rules.schedule import DAYS, Schedule, ScheduleWindow, parse, written
from app.node.rules.setting import HOURS_LENGTH
from app.node.rules.week import Week

quarters = st.integers(0, 95).map(lambda n: n * 15)
windows = st.builds(
    ScheduleWindow,
    days=st.lists(st.integers(0, 6), min_size=1, max_size=7, unique=True).map(tuple),
    start=quarters,
    end=st.integers(0, 96).map(lambda n: n * 15),
)


def opened(schedule: Schedule) -> list[tuple[int, int]]:
    return [
        (day, minute)
        for day in range(7)
        for minute in range(0, 1440, 5)
        if any(window.holds(day, minute) for window in schedule.windows)
    ]


@given(st.lists(windows, min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_any_text_is_painted_and_written_back(some: list[ScheduleWindow]) -> None:
    schedule = Schedule(tuple(some))
    text = Week(written(schedule)).text()
    assert opened(parse(text)) == opened(schedule)
    assert Week(text).text() == text, "what was written once is written so again"


def test_half_an_hour_is_half_of_it_and_stays_until_it_is_painted_over() -> None:
    week = Week("mon-fri 22:30-07:00")
    assert (week.share(0, 22), week.share(0, 23), week.share(1, 6), week.share(1, 7)) == (0.5, 1.0, 1.0, 0.0)
    assert week.share(5, 6) == 1.0, "Friday's night ends on Saturday"
    week.fill(range(6, 7), range(10, 12), True)
    assert week.text() == "mon-fri 22:30-07:00, sun 10:00-12:00"
    week.fill(range(0, 1), range(22, 23), True)
    assert week.text() == "mon 22:00-07:00, tue-fri 22:30-07:00, sun 10:00-12:00"


def test_nothing_and_everything() -> None:
    week = Week("")
    assert week.always and week.text() == ""
    week.fill(range(7), range(24), True)
    assert week.text() == "mon-sun 00:00-24:00" and week.minutes == 7 * 24 * 60
    week.fill(range(7), range(24), False)
    assert week.text() == ""


def test_a_day_for_all_days_and_a_night_over_the_end_of_the_week() -> None:
    week = Week("wed 08:00-12:15")
    week.spread(2)
    assert week.text() == "mon-sun 08:00-12:15"
    assert Week("sun 22:00-06:00").share(0, 5) == 1.0 and Week("sun 22:00-06:00").text() == "sun 22:00-06:00"


def test_the_longest_text_of_whole_and_half_hours_can_be_kept() -> None:
    every_other = ", ".join(f"{day} {hour:02}:00-{hour:02}:30" for day in DAYS for hour in range(24))
    assert len(Week(every_other).text()) <= HOURS_LENGTH
    chess = Week()
    for day in range(7):
        for hour in range(day % 2, 24, 2):
            chess.fill(range(day, day + 1), range(hour, hour + 1), True)
    assert len(chess.text()) <= HOURS_LENGTH
