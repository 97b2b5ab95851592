"""The queens that are missing on a board, so that no two attack each other."""

from __future__ import annotations

import re

from app.sapo import reading
from app.sapo.families import contents
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.families.grids.cells import Cell, cells_of, named
from app.sapo.families.wording import counted


def _score(answer: str, entry: Entry) -> float:
    """1 for a board in the form of the question: its queens and as many more as it needs, none attacked."""
    board = [reading.words(line) for line in answer.strip(reading.SPACE).split("\n")]
    size = len(entry["metadata"]["puzzle"])
    if [len(row) for row in board] != [size] * size or not {sign for row in board for sign in row} <= {
        "_",
        "Q",
    }:
        return 0.0
    queens = cells_of(board, ["Q"])
    lines = [
        {r for r, _ in queens},
        {c for _, c in queens},
        {r + c for r, c in queens},
        {r - c for r, c in queens},
    ]
    return float(
        all(len(line) == len(queens) == size for line in lines)
        and cells_of(entry["metadata"]["puzzle"], ["Q"]) <= queens
    )


def _placed(entry: Entry) -> list[Cell]:
    solved = [line.split() for line in entry["answer"].split("\n")]
    return sorted(cells_of(solved, ["Q"]) - cells_of(entry["metadata"]["puzzle"], ["Q"]))


def _sound(entry: Entry) -> bool:
    """Whether the answer is one."""
    return _score(entry["answer"], entry) == 1.0


def _work(entry: Entry) -> str:
    return f"Queens at {named(_placed(entry))}."


def _wording(entry: Entry) -> str:
    text = re.sub(
        r"place ([0-9]+) queen\(s\)", lambda n: f"place {counted(int(n[1]), 'queen')}", entry["question"]
    )
    return text.replace("should be also", "should also be").replace(
        "No two queens attack each other if they are not in", "Two queens attack each other if they are in"
    )


FAMILY = Family(
    name="n_queens",
    title="Queens",
    kind=FamilyKind.GRIDS,
    levels=(
        dict(n=5, min_remove=1, max_remove=3),
        dict(n=5, min_remove=2, max_remove=4),
        dict(n=7, min_remove=1, max_remove=4),
        dict(n=8, min_remove=2, max_remove=6),
    ),
    content=lambda entry: contents.cells(entry["metadata"]["puzzle"]),
    wording=_wording,
    score=_score,
    sound=_sound,
    work=_work,
)
