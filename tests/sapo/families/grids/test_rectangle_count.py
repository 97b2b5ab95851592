"""Rectangles: which drawings have one reading."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["rectangle_count"]
ONE = "###\n# #\n###\n"
CORNER = "####   \n#  #   \n#  #   \n###█###\n   #  #\n   #  #\n   ####\n"
TWICE = "███\n█ █\n███\n"
WALL = "##█##\n# █ #\n# █ #\n##█##\n"
CROSS = "  ###  \n  # #  \n##█#█##\n# # # #\n##█#█##\n  # #  \n  ###  \n"


def entry(puzzle: str, count: int) -> dict[str, object]:
    return {"question": "", "answer": str(count), "metadata": {"puzzle": puzzle, "solution": count}}


@pytest.mark.parametrize(
    ("puzzle", "count"), [(ONE, 1), (CORNER, 2), (TWICE, 2), (ONE + "   \n" + ONE, 2), (WALL, 2)]
)
def test_drawings_with_one_reading(puzzle: str, count: int) -> None:
    assert FAMILY.sound(entry(puzzle, count))
    assert not FAMILY.sound(entry(puzzle, count + 1))
    assert not FAMILY.sound(entry(puzzle, count - 1))


def test_a_cross_of_two_is_four_boxes_as_well() -> None:
    for count in range(6):
        assert not FAMILY.sound(entry(CROSS, count))


@pytest.mark.parametrize("puzzle", ["###\n#  \n###\n", "###\n###\n###\n", "#\n", "##█\n# █\n###\n"])
def test_lines_of_no_rectangle_are_no_question(puzzle: str) -> None:
    for count in range(6):
        assert not FAMILY.sound(entry(puzzle, count))


def test_a_search_that_is_too_long_ends() -> None:
    net = "█" * 30 + "\n"
    assert not FAMILY.sound(entry(net * 30, 15))


@pytest.mark.parametrize(
    ("text", "score"),
    [("2", 1.0), (" 2 ", 1.0), ("2.0", 1.0), ("3", 0.0), ("two", 0.0), ("1+1", 0.0), ("2 2", 0.0), ("", 0.0)],
)
def test_the_number_counts(text: str, score: float) -> None:
    assert FAMILY.judge(text, entry(CORNER, 2)) == score


def test_the_work_lists_corners() -> None:
    assert FAMILY.worked(entry(CORNER, 2)) == "Upper left corners: (1,1) (4,4). #2"
