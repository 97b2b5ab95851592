"""How long until every orange in a box is rotten, or whether one stays fresh."""

from __future__ import annotations

from collections import Counter

from app.sapo.families import contents, scores
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.families.grids.cells import cells_of, distances
from app.sapo.families.wording import replaced


def _fresh(matrix: list[list[int]]) -> list[int]:
    """How many are fresh at the beginning and after each minute in which one rots."""
    fresh = cells_of(matrix, [1])
    rots = Counter(distances(cells_of(matrix, [2]), fresh).values())
    counts = [len(fresh)]
    for minute in range(1, max(rots, default=0) + 1):
        counts.append(counts[-1] - rots[minute])
    return counts


def _sound(entry: Entry) -> bool:
    """Whether one is fresh and one rotten, and the answer is true: boxes without rotten ones often repeat."""
    fresh = _fresh(entry["metadata"]["matrix"])
    rotten = cells_of(entry["metadata"]["matrix"], [2])
    return (
        fresh[0] > 0 and bool(rotten) and entry["metadata"]["solution"] == (-1 if fresh[-1] else len(fresh) - 1)
    )


def _work(entry: Entry) -> str:
    counts = _fresh(entry["metadata"]["matrix"])
    return f"Fresh: {', '.join(map(str, counts))}{' for ever' if counts[-1] else ''}."


FAMILY = Family(
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
    sound=_sound,
    work=_work,
    thinned=(
        {"2": 0.48, "3": 0.34, "4": 0.47},
        {"3": 0.72, "4": 0.58, "5": 0.72},
        {"4": 0.97, "5": 0.87},
        {"5": 0.92, "6": 0.92},
    ),
)
