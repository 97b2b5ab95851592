"""Small sudokus: forms that are right, forms that are not, and what is no question."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["mini_sudoku"]
SOLVED = "1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 1"
GRID = [[int(cell) for cell in row.split()] for row in SOLVED.split("\n")]
PUZZLE = [[0, 2, 3, 4], [3, 0, 0, 2], [2, 1, 4, 3], [4, 3, 2, 1]]
ENTRY = {"question": "", "answer": SOLVED, "metadata": {"puzzle": PUZZLE, "solution": GRID}}


@pytest.mark.parametrize(
    "text",
    [
        SOLVED,
        SOLVED.replace(" ", "  "),
        SOLVED.replace(" ", ", "),
        SOLVED.replace("\n", " \n"),
        f"\n{SOLVED}\n",
    ],
)
def test_the_grid_is_right(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "_ 2 3 4\n3 _ _ 2\n2 1 4 3\n4 3 2 1",
        "1 2 3 4\n3 4 1 2\n2 1 4 3",
        "1 2 3 4\n3 4 1 2\n4 3 2 1\n2 1 4 3",
        "1 2 4 3\n3 4 1 2\n2 1 3 4\n4 3 2 1",
        SOLVED.replace("\n", " "),
        SOLVED.replace(" ", ""),
        "1 4 1",
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 0.0


def test_a_solution_that_is_none_is_no_question() -> None:
    assert FAMILY.sound(ENTRY)
    swapped = [GRID[0], GRID[1], GRID[3], GRID[2]]
    assert not FAMILY.sound({"metadata": {"puzzle": PUZZLE, "solution": swapped}})  # what was given moved
    columns = [[2, 1, 3, 4], [4, 3, 1, 2], [1, 2, 4, 3], [3, 4, 2, 2]]
    assert not FAMILY.sound({"metadata": {"puzzle": [[0] * 4] * 4, "solution": columns}})


def test_the_work_names_what_is_missing() -> None:
    assert FAMILY.worked(ENTRY) == f"Missing: row 1 1, row 2 4 1. #{SOLVED}"
