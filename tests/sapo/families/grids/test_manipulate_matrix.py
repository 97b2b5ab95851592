"""Changed grids: what each step means, and which steps mean two things."""

from __future__ import annotations

from typing import Any

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["manipulate_matrix"]
GRID = [[1, 2, 3], [4, 5, 6]]
STEPS = [
    (dict(transform="dmirror"), "1 4\n2 5\n3 6"),
    (dict(transform="cmirror"), "6 3\n5 2\n4 1"),
    ({"transform": "map", "from": 5, "to": 0}, "1 2 3\n4 0 6"),
    (dict(transform="zero_divisible", k=2), "1 0 3\n0 5 0"),
    (dict(transform="crop", row_start=1, row_end=2, col_start=2, col_end=2), "2\n5"),
    (dict(transform="remove_every_nth_row", n=2), "1 2 3"),
    (dict(transform="remove_every_nth_col", n=2), "1 3\n4 6"),
]


def entry(answer: str, *steps: dict[str, Any]) -> dict[str, Any]:
    solution = [[int(cell) for cell in row.split()] for row in answer.split("\n")]
    return {
        "question": "",
        "answer": answer,
        "metadata": {"matrix": GRID, "operations": list(steps), "solution": solution},
    }


@pytest.mark.parametrize(("step", "answer"), STEPS)
def test_a_step_means_this(step: dict[str, Any], answer: str) -> None:
    assert FAMILY.sound(entry(answer, step))
    assert FAMILY.judge(answer, entry(answer, step)) == 1.0
    for wrong in ("1 2 3\n4 5 6", answer + " 0", answer.replace("\n", " ") + "\n", answer + "\n0"):
        assert FAMILY.judge(wrong, entry(answer, step)) == float(wrong.strip() == answer)


@pytest.mark.parametrize("name", ["rotate", "hmirror", "vmirror"])
def test_a_step_that_could_mean_another_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="more than one meaning"):
        FAMILY.sound(entry("4 5 6\n1 2 3", dict(transform=name)))


def test_a_step_that_changes_nothing_and_a_false_answer_are_no_question() -> None:
    assert not FAMILY.sound(entry("1 2 3\n4 5 6", {"transform": "map", "from": 9, "to": 0}))
    assert not FAMILY.sound(entry("1 2 3\n4 5 6", dict(transform="dmirror")))


def test_the_work_shows_every_stage() -> None:
    steps = (dict(transform="dmirror"), dict(transform="remove_every_nth_row", n=2))
    assert FAMILY.worked(entry("1 4\n3 6", *steps)) == "Diagonal: 1 4 / 2 5 / 3 6. Rows: 1 4 / 3 6. #1 4\n3 6"
