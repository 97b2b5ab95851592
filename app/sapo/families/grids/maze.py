"""How many steps the shortest way through a maze has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.sapo import library
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


def _apart(entry: Entry) -> int:
    """Rows plus columns from start to goal: the steps of a way without a detour."""
    metadata = entry["metadata"]
    ((r, c),), ((down, right),) = (cells_of(metadata["grid"], metadata[end]) for end in ("start", "goal"))
    return abs(r - down) + abs(c - right)


def _sort(entry: Entry) -> str:
    return "straight" if _apart(entry) == int(entry["answer"]) else str(entry["answer"])


def _opened(settings: Mapping[str, Any]) -> Any:
    """With more walls than the library's own mazes, which hardly ever need a detour."""
    mazes, config = library.gym().factory.DATASETS["maze"]
    return mazes(config(seed=0, size=2**20, **settings), prob_path=0.55)


FAMILY = Family(
    name="maze",
    title="Mazes",
    kind=FamilyKind.PATHS,
    levels=(
        dict(min_dist=3, max_dist=12, min_grid_size=7, max_grid_size=8),
        dict(min_dist=4, max_dist=16, min_grid_size=8, max_grid_size=9),
        dict(min_dist=6, max_dist=20, min_grid_size=9, max_grid_size=11),
    ),
    opened=_opened,
    content=_content,
    wording=replaced(("= Passage\n", "= Passage\nA step goes up, down, left or right.\n")),
    sort=_sort,
    shortcuts={"rows plus columns": lambda entry: str(_apart(entry))},
    score=scores.integer,
    sound=_sound,
    work=_work,
    thinned=(
        {"straight": 0.06, "5": 0.76, "6": 0.67, "7": 0.72},
        {"straight": 0.14, "7": 0.97},
        {"straight": 0.33, "6": 0.85},
    ),
)
