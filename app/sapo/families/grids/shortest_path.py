"""A shortest way through a grid with blocked cells, as directions."""

from __future__ import annotations

from app.sapo import reading
from app.sapo.families import contents
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.families.grids.cells import MOVES, Cell, cells_of, named, route

_NONE = "infeasible"


def _shortest(entry: Entry) -> tuple[Cell, Cell, set[Cell], list[Cell]]:
    """Start, goal, the cells one may step on, and a shortest route."""
    grid = entry["metadata"]["matrix"]
    (start,), (goal,), free = cells_of(grid, "*"), cells_of(grid, "#"), cells_of(grid, "O#")
    return start, goal, free, route(start, goal, free)


def _score(answer: str, entry: Entry) -> float:
    """1 for the directions of any shortest way, with white space between; for `infeasible` where there is
    none."""
    said = [word.lower() for word in reading.words(answer)]
    (r, c), goal, free, shortest = _shortest(entry)
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


def _sound(entry: Entry) -> bool:
    """Whether the answer is one."""
    return _score(entry["answer"], entry) == 1.0


def _work(entry: Entry) -> str:
    start, goal, _, shortest = _shortest(entry)
    if not shortest:
        return f"No way from {named([start])} to {named([goal])}."
    return f"{named([start, *_along(start, entry)])}."


def _along(start: Cell, entry: Entry) -> list[Cell]:
    """The cells of the library's own way: the example has to end where its answer does."""
    cells = [start]
    for word in entry["metadata"]["solution"]:
        cells.append((cells[-1][0] + MOVES[word][0], cells[-1][1] + MOVES[word][1]))
    return cells[1:]


FAMILY = Family(
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
    score=_score,
    sound=_sound,
    work=_work,
    thinned=(
        {},
        {},
        {},
        {"infeasible": 0.59},
    ),
)
