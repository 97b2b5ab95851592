"""The numbers of a square grid in the order of a spiral from the outside in."""

from __future__ import annotations

from itertools import chain

from app.sapo import reading
from app.sapo.families import contents
from app.sapo.families.family import Entry, Family, FamilyKind

_TURNS = ("right", "down", "left", "up")


def _legs(matrix: list[list[int]]) -> list[list[int]]:
    """What is read on each straight part: a row, then the same of what is left, turned so that the next part is
    on top."""
    legs = []
    while matrix:
        legs.append(list(matrix[0]))
        matrix = [list(row) for row in zip(*matrix[1:], strict=True)][::-1]
    return legs


def _score(answer: str, entry: Entry) -> float:
    """1 for the numbers in one line with spaces between. The library runs the answer to see whether it is a
    list."""
    return float(reading.rows(answer) == [entry["metadata"]["solution"]])


def _sound(entry: Entry) -> bool:
    """Whether the numbers stand in another order than in the question: two of a kind may change places."""
    matrix, solution = entry["metadata"]["matrix"], entry["metadata"]["solution"]
    spiral, rows = ([*chain.from_iterable(parts)] for parts in (_legs(matrix), matrix))
    return bool(spiral == solution != rows)


def _work(entry: Entry) -> str:
    legs = (" ".join(map(str, leg)) for leg in _legs(entry["metadata"]["matrix"]))
    return ", ".join(f"{_TURNS[i % 4]} {leg}" for i, leg in enumerate(legs)).capitalize() + "."


FAMILY = Family(
    name="spiral_matrix",
    title="Spirals",
    kind=FamilyKind.GRIDS,
    levels=(
        dict(min_n=2, max_n=2),
        dict(min_n=2, max_n=3),
        dict(min_n=3, max_n=4),
        dict(min_n=4, max_n=6),
    ),
    content=lambda entry: contents.cells(entry["metadata"]["matrix"]),
    score=_score,
    sound=_sound,
    work=_work,
)
