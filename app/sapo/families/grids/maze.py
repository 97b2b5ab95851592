"""How many steps the shortest way through a maze has."""

from __future__ import annotations

from app.sapo.families import scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.families.grids.cells import Cell, cells_of, named, route
from app.sapo.families.wording import replaced

_QUOTES = "`'\""
"""Signs that stand around the maze and its signs in the question's text."""


def _shortest(entry: Entry) -> list[Cell]:
    metadata = entry["metadata"]
    grid, path, goal = metadata["grid"], metadata["path"], metadata["goal"]
    (start,), (end,) = cells_of(grid, metadata["start"]), cells_of(grid, goal)
    return [start, *route(start, end, cells_of(grid, path + goal))]


def _sound(entry: Entry) -> bool:
    """Whether each sign can be told from the quotes around it, and the answer is true."""
    metadata = entry["metadata"]
    signs = (metadata["wall"], metadata["path"], metadata["start"], metadata["goal"])
    return not any(sign in _QUOTES for sign in signs) and len(_shortest(entry)) - 1 == int(entry["answer"])


def _work(entry: Entry) -> str:
    return f"{named(_shortest(entry))}."


def _content(entry: Entry) -> Content:
    """The maze with the same signs for all."""
    metadata = entry["metadata"]
    signs = {metadata["wall"]: "#", metadata["path"]: ".", metadata["start"]: "S", metadata["goal"]: "G"}
    return tuple("".join(signs[sign] for sign in row) for row in metadata["grid"])


FAMILY = Family(
    name="maze",
    title="Mazes",
    kind=FamilyKind.PATHS,
    levels=(
        dict(min_dist=1, max_dist=6, min_grid_size=6, max_grid_size=6),
        dict(min_dist=2, max_dist=8, min_grid_size=7, max_grid_size=7),
        dict(min_dist=3, max_dist=12, min_grid_size=7, max_grid_size=9),
    ),
    content=_content,
    wording=replaced(("= Passage\n", "= Passage\nA step goes up, down, left or right.\n")),
    score=scores.integer,
    sound=_sound,
    work=_work,
    thinned=(
        {"1": 0.2, "2": 0.18, "3": 0.22, "4": 0.34, "5": 0.64},
        {"2": 0.46, "3": 0.5, "4": 0.57, "5": 0.76},
        {"3": 0.69, "4": 0.76, "5": 0.92},
    ),
)
