"""Grids of numbers: reading, turning and changing them."""

from __future__ import annotations

import re
from itertools import chain, pairwise
from typing import Any

from app.sapo import reading
from app.sapo.families import contents, scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind

# How far each cell of a grid is from the nearest 0.


def _binary_sound(entry: Entry) -> bool:
    """Whether some cell is further than 1 from a zero. In 23 % of level 0 none is, and the answer equals the
    question."""
    return bool(entry["metadata"]["solution"] != entry["metadata"]["matrix"])


BINARY_MATRIX = Family(
    name="binary_matrix",
    title="Distance grids",
    kind=FamilyKind.GRIDS,
    levels=(
        dict(min_n=3, max_n=3),
        dict(min_n=3, max_n=5),
        dict(min_n=4, max_n=7),
        dict(min_n=3, max_n=10),
    ),
    content=lambda entry: contents.cells(entry["metadata"]["matrix"]),
    score=scores.grid,
    sound=_binary_sound,
)


# The numbers of a square grid in the order of a spiral from the outside in.

_TURNS = ("right", "down", "left", "up")


def _legs(matrix: list[list[int]]) -> list[list[int]]:
    """Returns the numbers on each straight part of the spiral: the first row, then the first row of the
    remaining grid, turned so that the next part is on top."""
    legs = []
    while matrix:
        legs.append(list(matrix[0]))
        matrix = [list(row) for row in zip(*matrix[1:], strict=True)][::-1]
    return legs


def _spiral_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the numbers in one line, separated by spaces. The library executes the answer to see whether
    it is a list."""
    return float(reading.rows(answer) == [entry["metadata"]["solution"]])


def _spiral_sound(entry: Entry) -> bool:
    """True if the expected answer is in a different order from the numbers as printed, so that copying is not a
    solution. Swapping equal numbers is not a difference."""
    matrix, solution = entry["metadata"]["matrix"], entry["metadata"]["solution"]
    spiral, rows = ([*chain.from_iterable(parts)] for parts in (_legs(matrix), matrix))
    return bool(spiral == solution != rows)


def _spiral_work(entry: Entry) -> str:
    legs = (" ".join(map(str, leg)) for leg in _legs(entry["metadata"]["matrix"]))
    return ", ".join(f"{_TURNS[i % 4]} {leg}" for i, leg in enumerate(legs)).capitalize() + "."


SPIRAL_MATRIX = Family(
    name="spiral_matrix",
    title="Spirals",
    kind=FamilyKind.GRIDS,
    levels=(
        dict(min_n=2, max_n=2),
        dict(min_n=2, max_n=3),
        dict(min_n=3, max_n=4),
        dict(min_n=4, max_n=6),
    ),
    content=lambda entry: contents.cells(entry["metadata"]["matrix"]),
    score=_spiral_score,
    sound=_spiral_sound,
    work=_spiral_work,
)


# A square grid of numbers, turned clockwise.


def _before_and_after(entry: Entry) -> Content:
    return contents.cells(entry["metadata"]["matrix"]), contents.cells(entry["metadata"]["solution"])


def _turned(matrix: list[list[int]], quarters: int) -> list[list[int]]:
    """Returns the grid turned: after a quarter turn, cell (r, c) shows what was at (last - c, r)."""
    last = len(matrix) - 1
    sides = range(last + 1)
    match quarters % 4:
        case 1:
            return [[matrix[last - c][r] for c in sides] for r in sides]
        case 2:
            return [[matrix[last - r][last - c] for c in sides] for r in sides]
        case 3:
            return [[matrix[c][last - r] for c in sides] for r in sides]
    return matrix


def _rotate_sound(entry: Entry) -> bool:
    """Whether the rotation changes the grid."""
    metadata = entry["metadata"]
    turned = _turned(metadata["matrix"], metadata["num_rotations"])
    return bool(metadata["solution"] == turned != metadata["matrix"])


def _rotate_work(entry: Entry) -> str:
    metadata = entry["metadata"]
    quarters = metadata["num_rotations"] % 4
    taken = {
        1: "columns from the left, read upwards",
        2: "rows from the last, read backwards",
        3: "columns from the right, read downwards",
    }[quarters]
    whole = "" if quarters == metadata["num_rotations"] else f" is {90 * quarters}"
    return f"{90 * metadata['num_rotations']}{whole}: {taken}."


ROTATE_MATRIX = Family(
    name="rotate_matrix",
    title="Turned grids",
    kind=FamilyKind.GRIDS,
    levels=(
        dict(min_n=2, max_n=2, min_rotations=1, max_rotations=1),
        dict(min_n=2, max_n=2, min_rotations=1, max_rotations=3),
        dict(min_n=2, max_n=3, min_rotations=1, max_rotations=3),
        dict(min_n=3, max_n=5, min_rotations=1, max_rotations=7),
    ),
    content=_before_and_after,
    score=scores.grid,
    sound=_rotate_sound,
    work=_rotate_work,
)


# A grid of numbers, changed step by step.

_Grid = list[list[int]]

_SAID = {
    "dmirror": "Diagonal",
    "cmirror": "Counterdiagonal",
    "map": "Map",
    "zero_divisible": "Zeros",
    "crop": "Crop",
    "remove_every_nth_row": "Rows",
    "remove_every_nth_col": "Columns",
}
"""The unambiguous steps, as written in worked answers. Steps that turn do not say in which direction, and the
library's horizontal mirror is the opposite of the usual one."""


def _kept(line: list[Any], nth: int) -> list[Any]:
    return [one for place, one in enumerate(line, 1) if place % nth]


def _manipulate_done(grid: _Grid, step: dict[str, Any]) -> _Grid:
    """Returns the grid after one step. Raises ValueError if the step is ambiguous."""
    match step["transform"]:
        case "dmirror":
            return [[row[c] for row in grid] for c in range(len(grid[0]))]
        case "cmirror":
            return [[row[c] for row in reversed(grid)] for c in reversed(range(len(grid[0])))]
        case "map":
            return [[step["to"] if cell == step["from"] else cell for cell in row] for row in grid]
        case "zero_divisible":
            return [[cell if cell % step["k"] else 0 for cell in row] for row in grid]
        case "crop":
            rows = grid[step["row_start"] - 1 : step["row_end"]]
            return [row[step["col_start"] - 1 : step["col_end"]] for row in rows]
        case "remove_every_nth_row":
            return _kept(grid, step["n"])
        case "remove_every_nth_col":
            return [_kept(row, step["n"]) for row in grid]
        case other:
            raise ValueError(f"{other} has more than one meaning")


def _stages(entry: Entry) -> list[_Grid]:
    """Returns the grid of the question, and the grid after each step."""
    stages = [entry["metadata"]["matrix"]]
    for step in entry["metadata"]["operations"]:
        stages.append(_manipulate_done(stages[-1], step))
    return stages


def _manipulate_sound(entry: Entry) -> bool:
    """Whether every step is unambiguous and changes the grid, and the library's answer is right."""
    stages = _stages(entry)
    changes = pairwise(stages)
    return stages[-1] == entry["metadata"]["solution"] and all(before != after for before, after in changes)


def _manipulate_work(entry: Entry) -> str:
    steps = zip(entry["metadata"]["operations"], _stages(entry)[1:], strict=True)
    return " ".join(
        f"{_SAID[step['transform']]}: {' / '.join(' '.join(map(str, row)) for row in grid)}."
        for step, grid in steps
    )


_CLEAR = dict(w_rotate=-1000, w_hmirror=-1000, w_vmirror=-1000)
"""Logits of the library for the steps that `_manipulate_done` does not support, so that they never occur."""


def _manipulate_wording(entry: Entry) -> str:
    ordinals = re.compile(r"\b([0-9]+)-(?:st|nd|rd|th)\b")
    return ordinals.sub(lambda nth: nth[1] + {"2": "nd", "3": "rd"}.get(nth[1], "th"), str(entry["question"]))


MANIPULATE_MATRIX = Family(
    name="manipulate_matrix",
    title="Changed grids",
    kind=FamilyKind.GRIDS,
    levels=(
        dict(min_rows=2, max_rows=2, min_cols=2, max_cols=3, max_transforms=1, **_CLEAR),
        dict(min_rows=2, max_rows=3, min_cols=2, max_cols=3, max_transforms=2, **_CLEAR),
        dict(min_rows=3, max_rows=4, min_cols=3, max_cols=4, min_transforms=2, max_transforms=3, **_CLEAR),
        dict(min_rows=4, max_rows=6, min_cols=4, max_cols=6, min_transforms=2, max_transforms=4, **_CLEAR),
    ),
    content=_before_and_after,
    wording=_manipulate_wording,
    score=scores.grid,
    sound=_manipulate_sound,
    work=_manipulate_work,
)
