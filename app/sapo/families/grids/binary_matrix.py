"""How far each cell of a grid is from the nearest 0."""

from __future__ import annotations

from app.sapo.families import contents, scores
from app.sapo.families.family import Entry, Family, FamilyKind


def _sound(entry: Entry) -> bool:
    """Whether some cell is further than 1 from a zero. In 23 % of level 0 none is, and the answer is the
    question."""
    return bool(entry["metadata"]["solution"] != entry["metadata"]["matrix"])


FAMILY = Family(
    name="binary_matrix",
    title="Distance grids",
    kind=FamilyKind.GRIDS,
    levels=(
        dict(min_n=3, max_n=3),
        dict(min_n=3, max_n=5),
        dict(min_n=4, max_n=7),
        dict(min_n=3, max_n=10),
    ),
    content=lambda entry: contents.cells(entry["metadata"]["matrix"]),
    score=scores.grid,
    sound=_sound,
    paper=True,
)
