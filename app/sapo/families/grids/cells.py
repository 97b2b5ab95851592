"""Cells of a grid: what one can get to from where, one step up, down, left or right at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

Cell = tuple[int, int]
"""Row and column, from 0."""

MOVES: dict[str, Cell] = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def cells_of(grid: Sequence[Sequence[object]], kinds: Collection[object]) -> set[Cell]:
    """Where one of these stands.

    >>> sorted(cells_of(["X*", "*#"], "*"))
    [(0, 1), (1, 0)]
    """
    return {(r, c) for r, row in enumerate(grid) for c, kind in enumerate(row) if kind in kinds}


def distances(starts: Iterable[Cell], free: Collection[Cell]) -> dict[Cell, int]:
    """Fewest steps from the nearest start to each cell that can be got to, itself 0; all steps lead to free
    cells.

    >>> distances([(0, 0)], {(0, 1), (1, 1), (3, 3)})
    {(0, 0): 0, (0, 1): 1, (1, 1): 2}
    """
    found = dict.fromkeys(starts, 0)
    for r, c in (queue := list(found)):
        for down, right in MOVES.values():
            cell = (r + down, c + right)
            if cell in free and cell not in found:
                found[cell] = found[(r, c)] + 1
                queue.append(cell)
    return found


def route(start: Cell, goal: Cell, free: Collection[Cell]) -> list[Cell]:
    """A shortest route: the cells after the start, the goal the last; empty where there is none.

    >>> route((0, 0), (1, 1), {(0, 1), (1, 1)})
    [(0, 1), (1, 1)]
    """
    steps = distances([start], free)
    if goal not in steps:
        return []
    back = [goal]
    while steps[back[-1]] > 1:
        r, c = back[-1]
        near = ((r + down, c + right) for down, right in MOVES.values())
        back.append(next(cell for cell in near if steps.get(cell) == steps[back[-1]] - 1))
    return back[::-1]


def named(cells: Iterable[Cell]) -> str:
    """As a pupil writes places: row and column from 1.

    >>> named([(0, 1), (1, 1)])
    '(1,2) (2,2)'
    """
    return " ".join(f"({r + 1},{c + 1})" for r, c in cells)
