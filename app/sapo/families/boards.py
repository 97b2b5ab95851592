"""Boards and drawings: queens, a small sudoku, overlapping rectangles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent

from app.sapo import reading
from app.sapo.families import contents, scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.families.paths import Cell, cells_of, format_cells
from app.sapo.families.wording import counted

# The queens that are missing on a board, so that no two attack each other.


def _queens_score(answer: str, entry: Entry) -> float:
    """Scores 1 for a board in the question's format that keeps its queens and adds the missing ones so that
    none is attacked."""
    board = [reading.words(line) for line in answer.strip(reading.SPACE).split("\n")]
    size = len(entry["metadata"]["puzzle"])
    if [len(row) for row in board] != [size] * size or not {sign for row in board for sign in row} <= {
        "_",
        "Q",
    }:
        return 0.0
    queens = cells_of(board, ["Q"])
    lines = [
        {r for r, _ in queens},
        {c for _, c in queens},
        {r + c for r, c in queens},
        {r - c for r, c in queens},
    ]
    return float(
        all(len(line) == len(queens) == size for line in lines)
        and cells_of(entry["metadata"]["puzzle"], ["Q"]) <= queens
    )


def _placed(entry: Entry) -> list[Cell]:
    solved = [line.split() for line in entry["answer"].split("\n")]
    return sorted(cells_of(solved, ["Q"]) - cells_of(entry["metadata"]["puzzle"], ["Q"]))


def _queens_sound(entry: Entry) -> bool:
    """Whether the library's answer is right."""
    return _queens_score(entry["answer"], entry) == 1.0


def _queens_work(entry: Entry) -> str:
    return f"Queens at {format_cells(_placed(entry))}."


def _queens_wording(entry: Entry) -> str:
    text = re.sub(
        r"place ([0-9]+) queen\(s\)", lambda n: f"place {counted(int(n[1]), 'queen')}", entry["question"]
    )
    return text.replace("should be also", "should also be").replace(
        "No two queens attack each other if they are not in", "Two queens attack each other if they are in"
    )


N_QUEENS = Family(
    name="n_queens",
    title="Queens",
    kind=FamilyKind.GRIDS,
    levels=(
        dict(n=5, min_remove=1, max_remove=3),
        dict(n=5, min_remove=2, max_remove=4),
        dict(n=7, min_remove=1, max_remove=4),
        dict(n=8, min_remove=2, max_remove=6),
    ),
    content=lambda entry: contents.cells(entry["metadata"]["puzzle"]),
    wording=_queens_wording,
    score=_queens_score,
    sound=_queens_sound,
    work=_queens_work,
)


# The blanks of a sudoku of four rows.

_ALL = [1, 2, 3, 4]


def _solves(grid: list[list[int]], puzzle: list[list[int]]) -> bool:
    """Whether every row, column and box has each number once, and the given numbers are unchanged."""
    columns = [list(column) for column in zip(*grid, strict=True)]
    boxes = [grid[r][c : c + 2] + grid[r + 1][c : c + 2] for r in (0, 2) for c in (0, 2)]
    return all(sorted(unit) == _ALL for unit in (*grid, *columns, *boxes)) and all(
        given in (0, cell)
        for row, given_row in zip(grid, puzzle, strict=True)
        for cell, given in zip(row, given_row, strict=True)
    )


def _sudoku_sound(entry: Entry) -> bool:
    """Whether the library's solution is right. The library empties a cell only if the solution stays unique."""
    return _solves(entry["metadata"]["solution"], entry["metadata"]["puzzle"])


def _sudoku_work(entry: Entry) -> str:
    metadata = entry["metadata"]
    rows = zip(metadata["puzzle"], metadata["solution"], strict=True)
    missing = [[cell for given, cell in zip(*row, strict=True) if not given] for row in rows]
    parts = (f"row {r} {' '.join(map(str, row))}" for r, row in enumerate(missing, 1) if row)
    return f"Missing: {', '.join(parts)}."


MINI_SUDOKU = Family(
    name="mini_sudoku",
    title="Small sudokus",
    kind=FamilyKind.GRIDS,
    levels=(
        dict(min_empty=1, max_empty=2),
        dict(min_empty=2, max_empty=4),
        dict(min_empty=4, max_empty=7),
        dict(min_empty=8, max_empty=12),
    ),
    content=lambda entry: contents.cells(entry["metadata"]["puzzle"]),
    score=scores.grid,
    sound=_sudoku_sound,
    work=_sudoku_work,
)


# How many outlines of rectangles a drawing shows.

_TRIES = 300
"""Maximum rectangles placed in search of a second reading; a drawing that needs more is rejected as a
question.
"""


def _outlines(left: int, width: int) -> Iterator[int]:
    """Yields outlines of rectangles that lie wholly on `left` and have its first cell as upper left corner. Bit
    `r * width + c` of a number stands for the cell (r, c)."""
    corner = left & -left
    upper, east = corner, corner
    while (east := east << 1) & left:
        upper |= east
        outline, lower, ends = upper, upper, corner | east
        while (ends := ends << width) & left == ends:
            lower <<= width
            if lower & left == lower:
                yield outline | lower
            outline |= ends


def _readings(puzzle: str) -> dict[int, list[Cell]]:
    """Returns the ways to read the whole drawing, by number of rectangles: the upper left corners in one such
    way. Empty if the search takes too long."""
    lines = puzzle.split("\n")
    width = max(map(len, lines)) + 1  # a column without lines keeps rows apart
    once, twice = (sum(1 << r * width + c for r, c in cells_of(lines, signs)) for signs in ("#█", "█"))
    found: dict[int, list[Cell]] = {}
    tries = 0

    def search(once: int, twice: int, corners: list[Cell]) -> None:
        nonlocal tries
        if not once:
            found.setdefault(len(corners), corners)
            return
        corner = divmod((once & -once).bit_length() - 1, width)
        for outline in _outlines(once, width):
            tries += 1
            if tries <= _TRIES:
                search(once & ~(outline & ~twice), twice & ~outline, [*corners, corner])

    search(once, twice, [])
    return found if tries <= _TRIES else {}


def _rectangle_sound(entry: Entry) -> bool:
    """Whether the drawing has only one reading, with the number of rectangles that the library drew."""
    return list(_readings(entry["metadata"]["puzzle"])) == [entry["metadata"]["solution"]]


def _rectangle_work(entry: Entry) -> str:
    corners = _readings(entry["metadata"]["puzzle"])[entry["metadata"]["solution"]]
    return f"Upper left corners: {format_cells(corners)}."


def _drawing(puzzle: str) -> Content:
    """Returns the drawing without its position on the sheet."""
    return tuple(line.rstrip() for line in dedent(puzzle).strip("\n").split("\n"))


RECTANGLE_COUNT = Family(
    name="rectangle_count",
    title="Rectangles",
    kind=FamilyKind.GRIDS,
    levels=(
        dict(max_rectangles=6, width=14, height=10),
        dict(max_rectangles=7, width=18, height=12),
        dict(max_rectangles=8, width=24, height=16),
        dict(max_rectangles=12, width=32, height=20),
    ),
    content=lambda entry: _drawing(entry["metadata"]["puzzle"]),
    score=scores.integer,
    sound=_rectangle_sound,
    work=_rectangle_work,
    thinned=(
        {"1": 0.6, "2": 0.63, "3": 0.72, "4": 0.88},
        {"1": 0.78, "2": 0.82, "3": 0.93},
        {"1": 0.92, "2": 0.98},
        {},
    ),
    guess=(0.2, "3"),
)
