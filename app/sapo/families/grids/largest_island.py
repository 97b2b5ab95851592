"""The area of the largest island on a map of 0 and 1."""

from __future__ import annotations

from app.sapo.families import contents, scores
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.families.grids.cells import cells_of, distances
from app.sapo.families.wording import replaced


def _areas(grid: list[list[int]]) -> list[int]:
    """The area of every island, in the order in which they are met row by row."""
    land = cells_of(grid, [1])
    areas = []
    while land:
        island = distances([min(land)], land)
        areas.append(len(island))
        land -= island.keys()
    return areas


def _sound(entry: Entry) -> bool:
    """Whether there is land, and the answer is true."""
    areas = _areas(entry["metadata"]["grid"])
    return bool(areas) and max(areas) == entry["metadata"]["solution"]


def _work(entry: Entry) -> str:
    return f"Islands: {', '.join(map(str, _areas(entry['metadata']['grid'])))}."


FAMILY = Family(
    name="largest_island",
    title="Largest island",
    kind=FamilyKind.GRIDS,
    levels=(
        dict(
            min_rows=3,
            max_rows=3,
            min_cols=3,
            max_cols=4,
            min_num_islands=1,
            max_num_islands=2,
            min_island_size=1,
            max_island_size=8,
        ),
        dict(
            min_rows=4,
            max_rows=5,
            min_cols=4,
            max_cols=5,
            min_num_islands=1,
            max_num_islands=3,
            min_island_size=1,
            max_island_size=10,
        ),
        dict(
            min_rows=5,
            max_rows=7,
            min_cols=5,
            max_cols=7,
            min_num_islands=2,
            max_num_islands=5,
            min_island_size=2,
            max_island_size=12,
        ),
        dict(
            min_rows=7,
            max_rows=10,
            min_cols=7,
            max_cols=10,
            min_num_islands=3,
            max_num_islands=8,
            min_island_size=2,
            max_island_size=16,
        ),
    ),
    content=lambda entry: contents.cells(entry["metadata"]["grid"]),
    wording=replaced(("in grid.", "in the grid.")),
    score=scores.integer,
    sound=_sound,
    work=_work,
)
