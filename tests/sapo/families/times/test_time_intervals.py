"""Times between: forms that are right, forms that are not, and what follows from the question."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.sapo import library
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


@pytest.mark.parametrize("level", range(4))
def test_items_are_those_of_the_library_but_for_the_day_on_which_they_are_made(level: int) -> None:
    settings, opened = FAMILY.levels[level], FAMILY.opened
    assert opened is not None
    ours, theirs = (
        opened(settings),
        library.gym().create_dataset("time_intervals", size=10**9, seed=0, **settings),
    )
    today = str(date.today())
    for index in range(40):
        mine, made = ours[index], theirs[index]
        assert (mine["question"], mine["answer"]) == (made["question"], made["answer"])
        clean = json.loads(json.dumps(made["metadata"]).replace(f"{today} ", ""))
        assert mine["metadata"] == clean or mine["metadata"]["task_type"] == "date"
        assert today not in json.dumps(mine)


def test_an_item_that_midnight_falls_into_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = FAMILY.opened
    assert opened is not None
    spans = opened(FAMILY.levels[0])
    truth, made = spans[7], []
    whole = spans._library

    class Midnight:
        """The library, one of whose items is begun a day before it is done."""

        def __getitem__(self, index: int) -> Any:
            entry = whole[index]
            made.append(index)
            if len(made) == 1:
                entry["metadata"]["start_time"] = "1999-12-31 23:59:00"
                entry["answer"] = "24:00"
            return entry

    monkeypatch.setattr(spans, "_library", Midnight())
    assert spans[7] == truth and made == [7, 7]


def test_dates_are_english_in_every_locale() -> None:
    """No name of a day or a month comes from the locale: the library's dates are ours, which spell them."""
    opened = FAMILY.opened
    assert opened is not None
    spans = opened(FAMILY.levels[3])
    first = spans._library.config.min_date
    assert type(first + timedelta(days=40)) is type(first) is not date
    for form in spans._library.DATE_FORMATS:
        for days in range(0, 800, 31):
            plain = date(2023, 1, 1) + timedelta(days=days)
            assert type(first).fromisoformat(str(plain)).strftime(form) == plain.strftime(form)


def test_a_german_process_has_the_same_items(tmp_path: Path) -> None:
    if shutil.which("localedef") is None or not Path("/usr/share/i18n/locales/de_DE").exists():
        pytest.skip("no locale can be made here")
    made = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")]
    subprocess.run(made, check=True, capture_output=True)
    code = (
        "import json, locale, sys\n"
        "locale.setlocale(locale.LC_ALL, sys.argv[1])\n"
        "from datetime import date\n"
        "from app.sapo.questions import draw\n"
        "texts = [draw('time_intervals', 3, seed * 10**7).text for seed in range(30)]\n"
        "json.dump([date(2024, 1, 15).strftime('%A'), texts], sys.stdout)\n"
    )

    def items(name: str) -> list[Any]:
        done = subprocess.run(
            [sys.executable, "-c", code, name],
            env={**os.environ, "LOCPATH": str(tmp_path)},
            cwd=Path(__file__).resolve().parents[4],
            capture_output=True,
            check=True,
        )
        return list(json.loads(done.stdout))

    german, plain = items("de_DE.UTF-8"), items("C")
    assert (german[0], plain[0]) == ("Montag", "Monday")
    assert german[1] == plain[1]
