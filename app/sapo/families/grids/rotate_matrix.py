"""A square grid of numbers, turned clockwise."""

from __future__ import annotations

from app.sapo.families import contents, scores
from app.sapo.families.family import Entry, Family, FamilyKind


def _turned(matrix: list[list[int]], quarters: int) -> list[list[int]]:
    """Cell by cell: after a quarter, the place (r, c) shows what was at (last - c, r)."""
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


def _sound(entry: Entry) -> bool:
    """Whether the turned grid is another one than that of the question."""
    metadata = entry["metadata"]
    turned = _turned(metadata["matrix"], metadata["num_rotations"])
    return bool(metadata["solution"] == turned != metadata["matrix"])


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
    kind=FamilyKind.GRIDS,
    levels=(
        dict(min_n=2, max_n=2, min_rotations=1, max_rotations=1),
        dict(min_n=2, max_n=2, min_rotations=1, max_rotations=3),
        dict(min_n=2, max_n=3, min_rotations=1, max_rotations=3),
        dict(min_n=3, max_n=5, min_rotations=1, max_rotations=7),
    ),
    content=lambda entry: (
        contents.cells(entry["metadata"]["matrix"]),
        contents.cells(entry["metadata"]["solution"]),
    ),
    score=scores.grid,
    sound=_sound,
    work=_work,
)
