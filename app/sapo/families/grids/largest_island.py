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


def _sort(entry: Entry) -> str:
    return "one island" if len(_areas(entry["metadata"]["grid"])) == 1 else ""


def _land(entry: Entry) -> str:
    return str(len(cells_of(entry["metadata"]["grid"], [1])))


def _level(least: int, most: int, fewest: int, islands: int, size: int) -> dict[str, int]:
    """Walks that meet make one island of two."""
    sides = dict(min_rows=least, max_rows=most, min_cols=least, max_cols=most)
    return sides | dict(
        min_num_islands=fewest, max_num_islands=islands, min_island_size=1, max_island_size=size
    )


FAMILY = Family(
    name="largest_island",
    title="Largest island",
    kind=FamilyKind.GRIDS,
    levels=(
        _level(4, 5, 2, 4, 6),
        _level(5, 6, 3, 5, 7),
        _level(6, 7, 3, 6, 8),
        _level(7, 10, 4, 8, 12),
    ),
    content=lambda entry: contents.cells(entry["metadata"]["grid"]),
    wording=replaced(("in grid.", "in the grid.")),
    sort=_sort,
    shortcuts={"all land": _land},
    score=scores.integer,
    sound=_sound,
    work=_work,
    thinned=({"one island": 0.12}, {"one island": 0.16}, {"one island": 0.26}, {"one island": 0.32}),
)
