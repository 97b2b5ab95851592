"""A square grid of numbers, turned clockwise."""

from __future__ import annotations

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, Kind


def _turned(matrix: list[list[int]], quarters: int) -> list[list[int]]:
    """Cell by cell: after a quarter, the place (r, c) shows what was at (last - c, r)."""
    last = len(matrix) - 1
    of = (
        lambda r, c: (r, c),
        lambda r, c: (last - c, r),
        lambda r, c: (last - r, last - c),
        lambda r, c: (c, last - r),
    )[quarters % 4]
    places = [[of(r, c) for c in range(last + 1)] for r in range(last + 1)]
    return [[matrix[r][c] for r, c in row] for row in places]


def _sound(entry: Entry) -> bool:
    """Whether the turned grid is another one than that of the question."""
    metadata = entry["metadata"]
    turned = _turned(metadata["matrix"], metadata["num_rotations"])
    return metadata["solution"] == turned != metadata["matrix"]


def _work(entry: Entry) -> str:
    metadata = entry["metadata"]
    quarters = metadata["num_rotations"] % 4
    taken = {
        1: "columns from the left, read upwards",
        2: "rows from the last, read backwards",
        3: "columns from the right, read downwards",
    }[quarters]
    whole = "" if quarters == metadata["num_rotations"] else f" is {90 * quarters}"
    return f"{90 * metadata['num_rotations']}{whole}: {taken}."


FAMILY = Family(
    name="rotate_matrix",
    title="Turned grids",
    kind=Kind.GRIDS,
    levels=(
        dict(min_n=2, max_n=2, min_rotations=1, max_rotations=1),
        dict(min_n=2, max_n=2, min_rotations=1, max_rotations=3),
        dict(min_n=2, max_n=3, min_rotations=1, max_rotations=3),
        dict(min_n=3, max_n=5, min_rotations=1, max_rotations=7),
    ),
    score=scores.grid,
    sound=_sound,
    work=_work,
)
