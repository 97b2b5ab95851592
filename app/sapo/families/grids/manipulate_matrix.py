"""A grid of numbers, changed step by step."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from app.sapo.families import contents, scores
from app.sapo.families.family import Entry, Family, FamilyKind

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
"""The steps with one meaning, as a pupil notes them. A turn does not say which way round, and by a horizontal
mirror the library means the other one of two."""


def _kept(line: list[Any], nth: int) -> list[Any]:
    return [one for place, one in enumerate(line, 1) if place % nth]


def _done(grid: _Grid, step: dict[str, Any]) -> _Grid:
    """The grid after one step. Raises ValueError where the step has more than one meaning."""
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
    """The grid of the question, and that after each step."""
    stages = [entry["metadata"]["matrix"]]
    for step in entry["metadata"]["operations"]:
        stages.append(_done(stages[-1], step))
    return stages


def _sound(entry: Entry) -> bool:
    """Whether every step has one meaning and changes the grid, and the answer is true."""
    stages = _stages(entry)
    changes = pairwise(stages)
    return stages[-1] == entry["metadata"]["solution"] and all(before != after for before, after in changes)


def _work(entry: Entry) -> str:
    steps = zip(entry["metadata"]["operations"], _stages(entry)[1:], strict=True)
    return " ".join(
        f"{_SAID[step['transform']]}: {' / '.join(' '.join(map(str, row)) for row in grid)}."
        for step, grid in steps
    )


_CLEAR = dict(w_rotate=-1000, w_hmirror=-1000, w_vmirror=-1000)
"""The library raises e to these: the steps that `_done` does not know never come."""


def _wording(entry: Entry) -> str:
    ordinals = re.compile(r"\b([0-9]+)-(?:st|nd|rd|th)\b")
    return ordinals.sub(lambda nth: nth[1] + {"2": "nd", "3": "rd"}.get(nth[1], "th"), str(entry["question"]))


FAMILY = Family(
    name="manipulate_matrix",
    title="Changed grids",
    kind=FamilyKind.GRIDS,
    levels=(
        dict(min_rows=2, max_rows=2, min_cols=2, max_cols=3, max_transforms=1, **_CLEAR),
        dict(min_rows=2, max_rows=3, min_cols=2, max_cols=3, max_transforms=2, **_CLEAR),
        dict(min_rows=3, max_rows=4, min_cols=3, max_cols=4, min_transforms=2, max_transforms=3, **_CLEAR),
        dict(min_rows=4, max_rows=6, min_cols=4, max_cols=6, min_transforms=2, max_transforms=4, **_CLEAR),
    ),
    content=lambda entry: (
        contents.cells(entry["metadata"]["matrix"]),
        contents.cells(entry["metadata"]["solution"]),
    ),
    wording=_wording,
    score=scores.grid,
    sound=_sound,
    work=_work,
)
