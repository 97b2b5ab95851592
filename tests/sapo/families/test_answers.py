"""What a family accepts and refuses, by the table in answers.toml, and the hostile answers beside it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from app.sapo.families import FAMILIES
from tests.sapo.scoring.test_hostile import BOMBS, ODD, about, payloads

TABLE = tomllib.loads(Path(__file__).with_name("answers.toml").read_text(encoding="utf-8"))
CASES = [
    pytest.param(family, case, id=f"{family}-{number}")
    for family, rows in TABLE.items()
    for number, case in enumerate(rows.get("cases", ()))
]
PAID = {"right": 1.0, "quarter": 0.25, "wrong": 0.0}


def entry(row: dict[str, Any]) -> dict[str, Any]:
    return {"question": "", "answer": None, "metadata": {}} | row


def test_every_family_has_rows() -> None:
    assert TABLE.keys() == FAMILIES.keys()


@pytest.mark.parametrize("family", TABLE)
def test_items_are_questions_or_not_and_show_their_work(family: str) -> None:
    rows, record = TABLE[family], FAMILIES[family]
    for kind in ("sound", "unsound"):
        for row in rows.get(kind, ()):
            assert record.sound(entry(row)) == (kind == "sound"), row
    for row in (*rows.get("examples", ()), *rows.get("cases", ())):
        item = entry(row)
        shown = {"sound": record.sound, "solution": record.solution, "worked": record.worked}
        assert {name: of(item) for name, of in shown.items() if name in row} == {
            name: row[name] for name in shown if name in row
        }


@pytest.mark.parametrize(("family", "case"), CASES)
def test_an_answer_is_paid_by_the_table(family: str, case: dict[str, Any]) -> None:
    expected = {text: score for kind, score in PAID.items() for text in case.get(kind, ())}
    assert {text: FAMILIES[family].judge(text, entry(case)) for text in expected} == expected


@pytest.mark.parametrize(("family", "case"), [one for one in CASES if "right" in one.values[1]])
def test_hostile_answers_earn_nothing(family: str, case: dict[str, Any], tmp_path: Path) -> None:
    canary, known = tmp_path / "canary", {text.strip() for kind in PAID for text in case.get(kind, ())}
    other = next((text for text in case.get("wrong", ()) if text.strip()), "0")
    for text in [*payloads(canary), *BOMBS, *ODD, *about(case["right"][0], other)]:
        if text.strip() not in known:
            assert FAMILIES[family].judge(text, entry(case)) == 0.0, text[:60]
    assert not canary.exists()
