"""Mazes: what is true, and what is no question."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["maze"]


def entry(rows: str, steps: int, signs: str = "#.SG") -> dict[str, object]:
    metadata = {"grid": rows.split(), **dict(zip(("wall", "path", "start", "goal"), signs, strict=True))}
    return {"question": "", "answer": str(steps), "metadata": metadata}


ENTRY = entry("##### #S.## ##.## ##.G# #####", 4)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("4", 1.0),
        ("4.0", 1.0),
        (" +4", 1.0),
        ("3", 0.0),
        ("5", 0.0),
        ("4 steps", 0.0),
        ("S G", 0.0),
        ("2+2", 0.0),
    ],
)
def test_the_number_counts(text: str, score: float) -> None:
    assert FAMILY.judge(text, ENTRY) == score


def test_false_answers_and_signs_that_are_quotes_are_no_questions() -> None:
    assert FAMILY.sound(ENTRY)
    assert not FAMILY.sound(entry("##### #S.## ##.## ##.G# #####", 5))
    for quote in "`'\"":
        assert not FAMILY.sound(entry(f"##### #S{quote}## ##{quote}## ##{quote}G# #####", 4, f"#{quote}SG"))
    assert not FAMILY.sound(entry("#### #SG# ####", 0))


def test_the_work_names_the_cells() -> None:
    assert FAMILY.worked(ENTRY) == "(2,2) (2,3) (3,3) (4,3) (4,4). #4"
