"""Spans of time: items that do not depend on the day, the hour or the locale."""

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
            cwd=Path(__file__).resolve().parents[3],
            capture_output=True,
            check=True,
        )
        return list(json.loads(done.stdout))

    german, plain = items("de_DE.UTF-8"), items("C")
    assert (german[0], plain[0]) == ("Montag", "Monday")
    assert german[1] == plain[1]
