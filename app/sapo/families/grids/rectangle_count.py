"""How many outlines of rectangles a drawing shows."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

from app.sapo.families import scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.families.grids.cells import Cell, cells_of, named

_TRIES = 300
"""Rectangles laid down in search of another reading; a drawing that needs more is no question."""


def _outlines(left: int, width: int) -> Iterator[int]:
    """Outlines that lie wholly on `left` and begin at its first cell: that is the upper left corner of one. Bit
    `r * width + c` of a number stands for the cell (r, c)."""
    corner = left & -left
    upper, east = corner, corner
    while (east := east << 1) & left:
        upper |= east
        outline, lower, ends = upper, upper, corner | east
        while (ends := ends << width) & left == ends:
            lower <<= width
            if lower & left == lower:
                yield outline | lower
            outline |= ends


def _readings(puzzle: str) -> dict[int, list[Cell]]:
    """By count of rectangles: their upper left corners, in one way to draw the whole of it. Empty where the
    search is too long."""
    lines = puzzle.split("\n")
    width = max(map(len, lines)) + 1  # a column without lines keeps rows apart
    once, twice = (sum(1 << r * width + c for r, c in cells_of(lines, signs)) for signs in ("#█", "█"))
    found: dict[int, list[Cell]] = {}
    tries = 0

    def search(once: int, twice: int, corners: list[Cell]) -> None:
        nonlocal tries
        if not once:
            found.setdefault(len(corners), corners)
            return
        corner = divmod((once & -once).bit_length() - 1, width)
        for outline in _outlines(once, width):
            tries += 1
            if tries <= _TRIES:
                search(once & ~(outline & ~twice), twice & ~outline, [*corners, corner])

    search(once, twice, [])
    return found if tries <= _TRIES else {}


def _sound(entry: Entry) -> bool:
    """Whether the drawing can be read in one way alone: as so many rectangles as the library drew."""
    return list(_readings(entry["metadata"]["puzzle"])) == [entry["metadata"]["solution"]]


def _work(entry: Entry) -> str:
    corners = _readings(entry["metadata"]["puzzle"])[entry["metadata"]["solution"]]
    return f"Upper left corners: {named(corners)}."


def _drawing(puzzle: str) -> Content:
    """The drawing, wherever on the sheet it is."""
    return tuple(line.rstrip() for line in dedent(puzzle).strip("\n").split("\n"))


FAMILY = Family(
    name="rectangle_count",
    title="Rectangles",
    kind=FamilyKind.GRIDS,
    levels=(
        dict(max_rectangles=6, width=14, height=10),
        dict(max_rectangles=7, width=18, height=12),
        dict(max_rectangles=8, width=24, height=16),
        dict(max_rectangles=12, width=32, height=20),
    ),
    content=lambda entry: _drawing(entry["metadata"]["puzzle"]),
    score=scores.integer,
    sound=_sound,
    work=_work,
    thinned=(
        {"1": 0.6, "2": 0.63, "3": 0.72, "4": 0.88},
        {"1": 0.78, "2": 0.82, "3": 0.93},
        {"1": 0.92, "2": 0.98},
        {},
    ),
)
