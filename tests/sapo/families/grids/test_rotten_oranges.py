"""Rotting oranges: what is true, and what is no question."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["rotten_oranges"]


def entry(matrix: list[list[int]], minutes: int) -> dict[str, object]:
    return {"question": "", "answer": str(minutes), "metadata": {"matrix": matrix, "solution": minutes}}


ROTS = entry([[2, 1, 1], [0, 1, 0], [0, 1, 1]], 4)
STAYS = entry([[2, 1, 0], [0, 0, 1]], -1)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("4", 1.0),
        ("04", 1.0),
        ("4.0", 1.0),
        ("3", 0.0),
        ("5", 0.0),
        ("-1", 0.0),
        ("4 minutes", 0.0),
        ("4 or -1", 0.0),
    ],
)
def test_the_number_counts(text: str, score: float) -> None:
    assert FAMILY.judge(text, ROTS) == score


def test_true_answers_are_questions() -> None:
    assert FAMILY.sound(ROTS) and FAMILY.sound(STAYS)
    assert FAMILY.judge("-1", STAYS) == 1.0 and FAMILY.judge("1", STAYS) == 0.0


def test_a_box_without_fresh_or_rotten_ones_and_false_answers_are_no_questions() -> None:
    assert not FAMILY.sound(entry([[2, 0], [0, 2]], 0))
    assert not FAMILY.sound(entry([[1]], -1))
    assert not FAMILY.sound(entry([[2, 1, 1]], 3))
    assert not FAMILY.sound(entry([[2, 1, 1]], -1))
    assert not FAMILY.sound(entry([[2, 0, 1]], 2))


def test_the_work_counts_the_fresh_ones() -> None:
    assert FAMILY.worked(ROTS) == "Fresh: 5, 4, 2, 1, 0. #4"
    assert FAMILY.worked(STAYS) == "Fresh: 2, 1 for ever. #-1"
