"""The way from the middle of a star to the end of one of its arms."""

from __future__ import annotations

from app.sapo import reading
from app.sapo.families.family import Entry, Family, FamilyKind

_SHOWN = [1, 3, 5]
"""Every question tells this way as its example."""


def _score(answer: str, entry: Entry) -> float:
    """1 for the numbers on the way, in one line with spaces between; there is no other way."""
    return float(reading.rows(answer) == [entry["metadata"]["goal_path"]])


def _sound(entry: Entry) -> bool:
    return bool(entry["metadata"]["goal_path"] != _SHOWN)


def _work(entry: Entry) -> str:
    """Back from the goal: forwards one does not see which arm is the right one."""
    path = entry["metadata"]["goal_path"]
    return " ".join(f"To {path[i]} from {path[i - 1]}." for i in range(len(path) - 1, 0, -1))


FAMILY = Family(
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
    score=_score,
    sound=_sound,
    work=_work,
)
