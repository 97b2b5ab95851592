"""Largest island: what is one, and what is no question."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["largest_island"]
GRID = [[1, 1, 0, 1], [1, 0, 1, 0], [0, 0, 1, 1]]
ENTRY = {"question": "", "answer": "3", "metadata": {"grid": GRID, "solution": 3}}


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("3", 1.0),
        ("+3", 1.0),
        ("3.0", 1.0),
        ("7", 0.0),
        ("4", 0.0),
        ("3 cells", 0.0),
        ("3, 1, 3", 0.0),
        ("{3}", 0.0),
    ],
)
def test_the_number_counts(text: str, score: float) -> None:
    assert FAMILY.judge(text, ENTRY) == score


def test_a_map_without_land_and_a_false_answer_are_no_questions() -> None:
    assert FAMILY.sound(ENTRY)
    assert not FAMILY.sound({"metadata": {"grid": [[0, 0], [0, 0]], "solution": 0}})
    assert not FAMILY.sound({"metadata": {"grid": GRID, "solution": 4}})  # corners do not join
    snake = [[1, 1, 1], [0, 0, 1], [1, 1, 1], [1, 0, 0], [1, 1, 1]]
    assert FAMILY.sound({"metadata": {"grid": snake, "solution": 11}})


def test_the_work_lists_areas() -> None:
    assert FAMILY.worked(ENTRY) == "Islands: 3, 1, 3. #3"
