"""The blanks of a sudoku of four rows."""

from __future__ import annotations

from app.sapo.families import contents, scores
from app.sapo.families.family import Entry, Family, FamilyKind

_ALL = [1, 2, 3, 4]


def _solves(grid: list[list[int]], puzzle: list[list[int]]) -> bool:
    """Whether every row, column and box has each number once, and what was given stands where it stood."""
    columns = [list(column) for column in zip(*grid, strict=True)]
    boxes = [grid[r][c : c + 2] + grid[r + 1][c : c + 2] for r in (0, 2) for c in (0, 2)]
    return all(sorted(unit) == _ALL for unit in (*grid, *columns, *boxes)) and all(
        given in (0, cell)
        for row, given_row in zip(grid, puzzle, strict=True)
        for cell, given in zip(row, given_row, strict=True)
    )


def _sound(entry: Entry) -> bool:
    """Whether the solution is one. The library empties a cell only where one solution is left."""
    return _solves(entry["metadata"]["solution"], entry["metadata"]["puzzle"])


def _work(entry: Entry) -> str:
    metadata = entry["metadata"]
    rows = zip(metadata["puzzle"], metadata["solution"], strict=True)
    missing = [[cell for given, cell in zip(*row, strict=True) if not given] for row in rows]
    parts = (f"row {r} {' '.join(map(str, row))}" for r, row in enumerate(missing, 1) if row)
    return f"Missing: {', '.join(parts)}."


FAMILY = Family(
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
    sound=_sound,
    work=_work,
)
