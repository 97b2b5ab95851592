"""Spirals: forms that are right, forms that are not, and what is no question."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["spiral_matrix"]
MATRIX = [[1, 2, 3], [4, 5, 6], [7, 8, 0]]
ENTRY = {
    "question": "",
    "answer": "1 2 3 6 0 8 7 4 5",
    "metadata": {"matrix": MATRIX, "solution": [1, 2, 3, 6, 0, 8, 7, 4, 5]},
}


@pytest.mark.parametrize(
    "text", ["1 2 3 6 0 8 7 4 5", " 1  2 3 6 0 8 7 4\t5 \n", "[1, 2, 3, 6, 0, 8, 7, 4, 5]"]
)
def test_the_numbers_in_one_line_are_right(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "1 2 3 4 5 6 7 8 0",
        "1 2 3 6 0 8 7 4",
        "1 2 3 6 0 8 7 4 5 5",
        "123608745",
        "1 2 3\n6 0 8\n7 4 5",
        "1 2 3 6 0 8 7 4 05",
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 0.0


def test_what_can_be_copied_or_is_false_is_no_question() -> None:
    assert FAMILY.sound(ENTRY)
    assert not FAMILY.sound({"metadata": {"matrix": [[1, 2], [3, 3]], "solution": [1, 2, 3, 3]}})
    assert not FAMILY.sound({"metadata": {"matrix": [[1, 2], [3, 4]], "solution": [1, 2, 3, 4]}})


def test_the_work_goes_round() -> None:
    assert FAMILY.worked(ENTRY) == "Right 1 2 3, down 6 0, left 8 7, up 4, right 5. #1 2 3 6 0 8 7 4 5"
