"""Paths and neighbours on a grid or a graph; a step goes up, down, left or right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from app.sapo import library, reading
from app.sapo.families import contents, scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.families.wording import replaced

# Cells of a grid: what one can get to from where, one step up, down, left or right at a time.

Cell = tuple[int, int]
"""Row and column, from 0."""

MOVES: dict[str, Cell] = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def cells_of(grid: Sequence[Sequence[object]], kinds: Collection[object]) -> set[Cell]:
    """Returns the cells that show one of these signs.

    >>> sorted(cells_of(["X*", "*#"], "*"))
    [(0, 1), (1, 0)]
    """
    return {(r, c) for r, row in enumerate(grid) for c, kind in enumerate(row) if kind in kinds}


def distances(starts: Iterable[Cell], free: Collection[Cell]) -> dict[Cell, int]:
    """Returns, for every cell that can be reached over `free` cells, the number of steps from the nearest start
    (0 for a start).

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
    """Returns a shortest route: the cells after the start, up to the goal; empty if the goal cannot be reached.

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


def format_cells(cells: Iterable[Cell]) -> str:
    """Formats cells as row and column, counted from 1.

    >>> format_cells([(0, 1), (1, 1)])
    '(1,2) (2,2)'
    """
    return " ".join(f"({r + 1},{c + 1})" for r, c in cells)


# The way from the middle of a star to the end of one of its arms.

_STAR_SHOWN = [1, 3, 5]
"""The example path shown in every question."""


def _star_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the numbers on the path, in one line separated by spaces; there is only one path."""
    return float(reading.rows(answer) == [entry["metadata"]["goal_path"]])


def _star_sound(entry: Entry) -> bool:
    return bool(entry["metadata"]["goal_path"] != _STAR_SHOWN)


def _star_work(entry: Entry) -> str:
    """Returns the path backwards from the goal: going forwards it is unknown which arm is the right one."""
    path = entry["metadata"]["goal_path"]
    return " ".join(f"To {path[i]} from {path[i - 1]}." for i in range(len(path) - 1, 0, -1))


PATH_STAR = Family(
    name="path_star",
    title="Star paths",
    kind=FamilyKind.PATHS,
    levels=(
        dict(degree=2, node_range=20, min_path_length=2, max_path_length=2),
        dict(degree=3, node_range=50, min_path_length=2, max_path_length=3),
        dict(degree=3, node_range=100, min_path_length=3, max_path_length=4),
        dict(degree=4, node_range=1000, min_path_length=4, max_path_length=6),
    ),
    content=lambda entry: tuple(entry["metadata"]["goal_path"]),
    score=_star_score,
    sound=_star_sound,
    work=_star_work,
)


# A shortest way through a grid with blocked cells, as directions.

_NONE = "infeasible"


def _shortest_route(entry: Entry) -> tuple[Cell, Cell, set[Cell], list[Cell]]:
    """Returns start, goal, the walkable cells, and a shortest route."""
    grid = entry["metadata"]["matrix"]
    (start,), (goal,), free = cells_of(grid, "*"), cells_of(grid, "#"), cells_of(grid, "O#")
    return start, goal, free, route(start, goal, free)


def _shortest_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the directions of any shortest path, separated by white space, or `infeasible` if no path
    exists."""
    said = [word.lower() for word in reading.words(answer)]
    (r, c), goal, free, shortest = _shortest_route(entry)
    if not shortest:
        return float(said == [_NONE])
    if len(said) != len(shortest):
        return 0.0
    for word in said:
        down, right = MOVES.get(word, (0, 0))
        r, c = r + down, c + right
        if (r, c) not in free:
            return 0.0
    return float((r, c) == goal)


def _shortest_sound(entry: Entry) -> bool:
    """Whether the library's answer is right."""
    return _shortest_score(entry["answer"], entry) == 1.0


def _shortest_work(entry: Entry) -> str:
    start, goal, _, shortest = _shortest_route(entry)
    if not shortest:
        return f"No way from {format_cells([start])} to {format_cells([goal])}."
    return f"{format_cells([start, *_along(start, entry)])}."


def _along(start: Cell, entry: Entry) -> list[Cell]:
    """Returns the cells of the library's own path, so that the example ends where its answer does."""
    cells = [start]
    for word in entry["metadata"]["solution"]:
        cells.append((cells[-1][0] + MOVES[word][0], cells[-1][1] + MOVES[word][1]))
    return cells[1:]


SHORTEST_PATH = Family(
    name="shortest_path",
    title="Shortest path",
    kind=FamilyKind.PATHS,
    levels=(
        dict(min_rows=2, max_rows=3, min_cols=2, max_cols=3, p_blocked=0.1),
        dict(min_rows=3, max_rows=4, min_cols=3, max_cols=4, p_blocked=0.25),
        dict(min_rows=4, max_rows=6, min_cols=4, max_cols=6, p_blocked=0.3),
        dict(min_rows=5, max_rows=8, min_cols=5, max_cols=8, p_blocked=0.35),
    ),
    content=lambda entry: contents.cells(entry["metadata"]["matrix"]),
    score=_shortest_score,
    sound=_shortest_sound,
    work=_shortest_work,
    thinned=(
        {},
        {},
        {},
        {"infeasible": 0.59},
    ),
)


# How many steps the shortest way through a maze has.

_QUOTES = "`'\""
"""Characters around the maze and its signs in the question's text."""


def _maze_route(entry: Entry) -> list[Cell]:
    metadata = entry["metadata"]
    grid, path, goal = metadata["grid"], metadata["path"], metadata["goal"]
    (start,), (end,) = cells_of(grid, metadata["start"]), cells_of(grid, goal)
    return [start, *route(start, end, cells_of(grid, path + goal))]


def _maze_sound(entry: Entry) -> bool:
    """Whether each sign differs from the quotes around it, and the library's answer is right."""
    metadata = entry["metadata"]
    signs = (metadata["wall"], metadata["path"], metadata["start"], metadata["goal"])
    return not any(sign in _QUOTES for sign in signs) and len(_maze_route(entry)) - 1 == int(entry["answer"])


def _maze_work(entry: Entry) -> str:
    return f"{format_cells(_maze_route(entry))}."


def _maze_content(entry: Entry) -> Content:
    """Returns the maze with standard signs in place of the question's own."""
    metadata = entry["metadata"]
    signs = {metadata["wall"]: "#", metadata["path"]: ".", metadata["start"]: "S", metadata["goal"]: "G"}
    return tuple("".join(signs[sign] for sign in row) for row in metadata["grid"])


def _apart(entry: Entry) -> int:
    """Returns rows plus columns from start to goal: the steps of a path without a detour."""
    metadata = entry["metadata"]
    ((r, c),), ((down, right),) = (cells_of(metadata["grid"], metadata[end]) for end in ("start", "goal"))
    return abs(r - down) + abs(c - right)


def _maze_sort(entry: Entry) -> str:
    return "straight" if _apart(entry) == int(entry["answer"]) else str(entry["answer"])


def _maze_opened(settings: Mapping[str, Any]) -> Any:
    """Creates the library's mazes with more walls: its own rarely need a detour."""
    mazes = library.gym().create_dataset("maze", seed=0, size=1)
    return type(mazes)(type(mazes.config)(seed=0, size=2**20, **settings), prob_path=0.55)


MAZE = Family(
    name="maze",
    title="Mazes",
    kind=FamilyKind.PATHS,
    levels=(
        dict(min_dist=3, max_dist=12, min_grid_size=7, max_grid_size=8),
        dict(min_dist=4, max_dist=16, min_grid_size=8, max_grid_size=9),
        dict(min_dist=6, max_dist=20, min_grid_size=9, max_grid_size=11),
    ),
    opened=_maze_opened,
    content=_maze_content,
    wording=replaced(("= Passage\n", "= Passage\nA step goes up, down, left or right.\n")),
    sort=_maze_sort,
    shortcuts={"rows plus columns": lambda entry: str(_apart(entry))},
    score=scores.integer,
    sound=_maze_sound,
    work=_maze_work,
    thinned=(
        {"straight": 0.06, "5": 0.76, "6": 0.67, "7": 0.72},
        {"straight": 0.14, "7": 0.97},
        {"straight": 0.33, "6": 0.85},
    ),
    guess=(0.22, "rows plus columns"),
)


# The area of the largest island on a map of 0 and 1.


def _areas(grid: list[list[int]]) -> list[int]:
    """Returns the area of every island, in row-by-row order of their first cells."""
    land = cells_of(grid, [1])
    areas = []
    while land:
        island = distances([min(land)], land)
        areas.append(len(island))
        land -= island.keys()
    return areas


def _island_sound(entry: Entry) -> bool:
    """Whether there is land, and the library's answer is right."""
    areas = _areas(entry["metadata"]["grid"])
    return bool(areas) and max(areas) == entry["metadata"]["solution"]


def _island_work(entry: Entry) -> str:
    return f"Islands: {', '.join(map(str, _areas(entry['metadata']['grid'])))}."


def _island_sort(entry: Entry) -> str:
    return "one island" if len(_areas(entry["metadata"]["grid"])) == 1 else ""


def _land(entry: Entry) -> str:
    return str(len(cells_of(entry["metadata"]["grid"], [1])))


def _island_level(least: int, most: int, fewest: int, islands: int, size: int) -> dict[str, int]:
    """Returns settings of a level. Random walks that meet merge two islands into one."""
    sides = dict(min_rows=least, max_rows=most, min_cols=least, max_cols=most)
    return sides | dict(
        min_num_islands=fewest, max_num_islands=islands, min_island_size=1, max_island_size=size
    )


LARGEST_ISLAND = Family(
    name="largest_island",
    title="Largest island",
    kind=FamilyKind.GRIDS,
    levels=(
        _island_level(4, 5, 2, 4, 6),
        _island_level(5, 6, 3, 5, 7),
        _island_level(6, 7, 3, 6, 8),
        _island_level(7, 10, 4, 8, 12),
    ),
    content=lambda entry: contents.cells(entry["metadata"]["grid"]),
    wording=replaced(("in grid.", "in the grid.")),
    sort=_island_sort,
    shortcuts={"all land": _land},
    score=scores.integer,
    sound=_island_sound,
    work=_island_work,
    thinned=({"one island": 0.12}, {"one island": 0.16}, {"one island": 0.26}, {"one island": 0.32}),
    guess=(0.22, "all of the land"),
)


# How long until every orange in a box is rotten, or whether one stays fresh.


def _fresh(matrix: list[list[int]]) -> list[int]:
    """Returns how many oranges are fresh at the start and after each minute in which one rots."""
    fresh = cells_of(matrix, [1])
    rots = Counter(distances(cells_of(matrix, [2]), fresh).values())
    counts = [len(fresh)]
    for minute in range(1, max(rots, default=0) + 1):
        counts.append(counts[-1] - rots[minute])
    return counts


def _oranges_sound(entry: Entry) -> bool:
    """Whether there is a fresh and a rotten orange, and the library's answer is right: boxes without rotten
    ones often repeat."""
    fresh = _fresh(entry["metadata"]["matrix"])
    rotten = cells_of(entry["metadata"]["matrix"], [2])
    return (
        fresh[0] > 0 and bool(rotten) and entry["metadata"]["solution"] == (-1 if fresh[-1] else len(fresh) - 1)
    )


def _oranges_work(entry: Entry) -> str:
    counts = _fresh(entry["metadata"]["matrix"])
    return f"Fresh: {', '.join(map(str, counts))}{' for ever' if counts[-1] else ''}."


ROTTEN_ORANGES = Family(
    name="rotten_oranges",
    title="Rotting oranges",
    kind=FamilyKind.GRIDS,
    levels=(
        dict(min_n=3, max_n=4, p_rotten=0.15),
        dict(min_n=4, max_n=5, p_rotten=0.12),
        dict(min_n=5, max_n=7),
        dict(min_n=7, max_n=9),
    ),
    content=lambda entry: contents.cells(entry["metadata"]["matrix"]),
    wording=replaced(("task is determine", "task is to determine")),
    score=scores.integer,
    sound=_oranges_sound,
    work=_oranges_work,
    thinned=(
        {"2": 0.48, "3": 0.34, "4": 0.47},
        {"3": 0.72, "4": 0.58, "5": 0.72},
        {"4": 0.97, "5": 0.87},
        {"5": 0.92, "6": 0.92},
    ),
    guess=(0.22, "5"),
)
