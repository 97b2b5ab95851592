"""Shortest path: every shortest way is right, no other one."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["shortest_path"]


def entry(rows: str, answer: str) -> dict[str, object]:
    solution = [] if answer == "infeasible" else answer.split()
    metadata = {"matrix": [list(row) for row in rows.split()], "solution": solution}
    return {"question": "", "answer": answer, "metadata": metadata}


OPEN = entry("*OO OOO OX#", "right right down down")
WALL = entry("*X# OXO", "infeasible")


@pytest.mark.parametrize(
    "text",
    [
        "right right down down",
        "right down right down",
        "down right right down",
        "Right down\nright  down",
        "RIGHT RIGHT DOWN DOWN",
    ],
)
def test_every_shortest_way_is_right(text: str) -> None:
    assert FAMILY.judge(text, OPEN) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "right right down",
        "right right down down down",
        "right right down up down down",
        "down down right right",
        "right right right down",
        "right, right, down, down",
        "R R D D",
        "infeasible",
        "right right down down right",
        "up right right down",
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, OPEN) == 0.0


def test_where_no_way_is_only_that_is_right() -> None:
    assert FAMILY.judge("infeasible", WALL) == FAMILY.judge("Infeasible", WALL) == 1.0
    for text in ("right right", "no", "infeasible infeasible", "down"):
        assert FAMILY.judge(text, WALL) == 0.0


def test_a_false_answer_is_no_question() -> None:
    assert FAMILY.sound(OPEN) and FAMILY.sound(WALL)
    assert not FAMILY.sound(entry("*OO OOO OX#", "infeasible"))
    assert not FAMILY.sound(entry("*X# OXO", "right right"))


def test_the_work_names_the_cells() -> None:
    assert FAMILY.worked(OPEN) == "(1,1) (1,2) (1,3) (2,3) (3,3). #right right down down"
    assert FAMILY.worked(WALL) == "No way from (1,1) to (1,3). #infeasible"
