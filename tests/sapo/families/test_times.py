"""Spans of time: items that do not depend on the day, the hour or the locale."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["time_intervals"]


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
