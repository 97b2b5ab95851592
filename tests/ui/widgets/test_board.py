"""The grid that is drawn is the one that the question means."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.chat.board import ANSWERED_IN_ROWS, Grid, board
from app.sapo.families import FAMILIES
from app.sapo.questions import draw
from app.ui.theme import Theme
from app.ui.widgets.board import Board

SPACED = ("spiral_matrix", "rotate_matrix", "manipulate_matrix", "rotten_oranges", "mini_sudoku", "n_queens")
LEVELS = [(name, level) for name in SPACED for level in range(len(FAMILIES[name].levels))]


def signs(grid: Grid | None) -> list[list[str]]:
    assert grid is not None
    return [[sign for sign, _ in row] for row in grid]


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_the_cells_are_those_of_the_question(name: str, level: int) -> None:
    for seed in range(5):
        question = draw(name, level, seed * 10**8)
        metadata = question.entry["metadata"]
        meant = metadata.get("puzzle") or metadata["matrix"]
        blank = {"_", "0"} if name == "mini_sudoku" else {"_"}
        assert signs(board(name, question.text)) == [
            ["" if str(cell) in blank else str(cell) for cell in row] for row in meant
        ]


@pytest.mark.parametrize("level", range(3))
def test_a_maze_has_walls_and_two_signs(level: int) -> None:
    for seed in range(5):
        question = draw("maze", level, seed * 10**8)
        metadata, grid = question.entry["metadata"], board("maze", question.text)
        assert grid is not None
        looks = {metadata["wall"]: "wall", metadata["path"]: "empty"}
        assert [[look for _, look in row] for row in grid] == [
            [looks.get(sign, "goal") for sign in row] for row in metadata["grid"]
        ]
        assert sorted(sign for row in grid for sign, look in row if sign) == sorted(
            (metadata["start"], metadata["goal"])
        )


@pytest.mark.parametrize("level", range(4))
def test_a_drawing_keeps_its_lines(level: int) -> None:
    for seed in range(5):
        question = draw("rectangle_count", level, seed * 10**8)
        grid = board("rectangle_count", question.text)
        assert grid is not None
        sign = {"wall": "#", "twice": "█", "empty": " "}
        lines = ["".join(sign[look] for _, look in row).rstrip() for row in grid]
        assert lines == [line.rstrip() for line in question.entry["metadata"]["puzzle"].rstrip().split("\n")]


def test_answers_in_rows_are_those_that_have_rows() -> None:
    for name, family in FAMILIES.items():
        entries = [draw(name, 0, seed * 10**8).entry for seed in range(5)]
        rows = [len(family.solution(entry).split("\n")) for entry in entries]
        assert (max(rows) > 1) == (name in ANSWERED_IN_ROWS), name


@pytest.mark.parametrize("text", ["", "no grid", "1 2\n3", "```\n\n```", "1 2 3\n" * 41, "below?\n"])
def test_where_no_grid_is_nothing_is_drawn(text: str) -> None:
    for name in FAMILIES:
        assert board(name, text) is None


def test_the_board_is_as_large_as_its_grid(qtbot: QtBot, light: Theme) -> None:
    one = Board(light)
    qtbot.addWidget(one)
    one.say([[("1", "plain"), ("", "wall")]])
    assert one.isVisible() and one.width() > one.height()
    one.say([[("", "wall")] * 40] * 40)
    assert one.width() == one.height() <= 290
    one.say(None)
    assert not one.isVisible()
