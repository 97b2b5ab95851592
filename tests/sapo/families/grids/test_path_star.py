"""Star paths: forms that are right, forms that are not, and what is no question."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["path_star"]
ENTRY = {"question": "", "answer": "19 11 16", "metadata": {"goal_path": [19, 11, 16]}}


@pytest.mark.parametrize("text", ["19 11 16", "\t19  11 16\n", "19, 11, 16", "[19, 11, 16]"])
def test_the_numbers_in_one_line_are_right(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "16 11 19",
        "19 16",
        "11 16",
        "19 0 16",
        "19 11 16 16",
        "19-11-16",
        "19\n11\n16",
        "19 11 | 11 16",
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 0.0


def test_the_way_of_the_example_is_no_question() -> None:
    assert FAMILY.sound(ENTRY)
    assert not FAMILY.sound({"metadata": {"goal_path": [1, 3, 5]}})


def test_the_work_goes_back_from_the_goal() -> None:
    assert FAMILY.worked(ENTRY) == "To 16 from 11. To 11 from 19. #19 11 16"
