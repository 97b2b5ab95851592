"""The grid that a puzzle's text shows, read cell by cell so that it can be drawn. The text itself stays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

Look = Literal["plain", "empty", "wall", "goal", "twice"]
Cell = tuple[str, Look]
Grid = list[list[Cell]]

MOST = 40
"""Rows and columns; a larger grid stays text."""

_FENCED = re.compile(r"```\n(.*?)\n```", re.DOTALL)
_DRAWN = re.compile(r"below\?\n(.+)", re.DOTALL)
_SIGNS = re.compile(r"from '(.)' \(start\) to '(.)' \(goal\).*'(.)' = Wall, '(.)' = Passage", re.DOTALL)

_LOOKS: Mapping[str, Mapping[str, Look]] = {
    "shortest_path": {"O": "empty", "X": "wall", "*": "goal", "#": "goal"},
    "n_queens": {"_": "empty", "Q": "goal"},
    "mini_sudoku": {"_": "empty"},
    "largest_island": {"0": "empty", "1": "wall"},
}
_GRIDS = {
    "binary_matrix",
    "spiral_matrix",
    "rotate_matrix",
    "manipulate_matrix",
    "rotten_oranges",
    *_LOOKS,
}
"""Families whose question has one grid with spaces between its cells."""
ANSWERED_IN_ROWS = frozenset({"binary_matrix", "rotate_matrix", "manipulate_matrix", "mini_sudoku", "n_queens"})
"""Families whose answer is a grid as well."""


def board(family: str, text: str) -> Grid | None:
    """The grid of a puzzle; None where there is none to draw.

    >>> board("mini_sudoku", "Solve this:\\n1 _\\n_ 2\\nFormat: rows")
    [[('1', 'plain'), ('', 'empty')], [('', 'empty'), ('2', 'plain')]]
    """
    grid = None
    if family == "maze":
        grid = _maze(text)
    elif family == "rectangle_count":
        grid = _drawing(text)
    elif family in _GRIDS:
        grid = _spaced(text, _LOOKS.get(family, {}))
    fits = grid and len(grid) <= MOST and len(grid[0]) <= MOST and len({len(row) for row in grid}) == 1
    return grid if fits else None


def _maze(text: str) -> Grid | None:
    fenced, signs = _FENCED.search(text), _SIGNS.search(text)
    if fenced is None or signs is None:
        return None
    start, goal, wall, path = signs.groups()
    looks: dict[str, Look] = {start: "goal", goal: "goal", wall: "wall", path: "empty"}
    return [[_cell(sign, looks) for sign in line] for line in fenced[1].split("\n")]


def _drawing(text: str) -> Grid | None:
    """What follows the question; lines may end before the drawing does."""
    drawn = _DRAWN.search(text)
    if drawn is None:
        return None
    lines = drawn[1].split("\n")
    width = max(map(len, lines))
    looks: dict[str, Look] = {" ": "empty", "#": "wall", "█": "twice"}
    return [[_cell(sign, looks) for sign in line.ljust(width)] for line in lines]


def _spaced(text: str, looks: Mapping[str, Look]) -> Grid | None:
    """The longest run of lines with as many short cells each."""
    runs: list[list[list[str]]] = [[]]
    for line in text.split("\n"):
        cells = line.split()
        if len(cells) < 2 or any(len(cell) > 2 for cell in cells):
            runs.append([])
        elif runs[-1] and len(runs[-1][0]) != len(cells):
            runs.append([cells])
        else:
            runs[-1].append(cells)
    longest = max(runs, key=len)
    return [[_cell(sign, looks) for sign in row] for row in longest] if len(longest) > 1 else None


def _cell(sign: str, looks: Mapping[str, Look]) -> Cell:
    look = looks.get(sign, "plain")
    return ("" if look in ("empty", "wall", "twice") else sign, look)
