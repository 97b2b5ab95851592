"""Turned grids: forms that are right, forms that are not, and what is no question."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["rotate_matrix"]


def entry(quarters: int, solution: list[list[int]]) -> dict[str, object]:
    metadata = {"matrix": [[1, 2], [3, 4]], "num_rotations": quarters, "solution": solution}
    answer = "\n".join(" ".join(map(str, row)) for row in solution)
    return {"question": "", "answer": answer, "metadata": metadata}


@pytest.mark.parametrize(
    "text", ["3 1\n4 2", " 3  1 \n 4 2\n", "3 1\r\n4 2", "[[3, 1], [4, 2]]", "[[3 1]\n [4 2]]"]
)
def test_the_grid_is_right(text: str) -> None:
    assert FAMILY.judge(text, entry(1, [[3, 1], [4, 2]])) == 1.0


@pytest.mark.parametrize(
    "text",
    ["1 2\n3 4", "2 4\n1 3", "3 1 4 2", "31\n42", "[[3, 1], [4, 2]", "3 1\n\n4 2", "3 1\n4 2\n0 0", "3 1\n4"],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, entry(1, [[3, 1], [4, 2]])) == 0.0


@pytest.mark.parametrize(
    ("quarters", "turned", "taken"),
    [
        (1, [[3, 1], [4, 2]], "90: columns from the left, read upwards."),
        (2, [[4, 3], [2, 1]], "180: rows from the last, read backwards."),
        (3, [[2, 4], [1, 3]], "270: columns from the right, read downwards."),
        (5, [[3, 1], [4, 2]], "450 is 90: columns from the left, read upwards."),
    ],
)
def test_the_work_says_what_is_read(quarters: int, turned: list[list[int]], taken: str) -> None:
    one = entry(quarters, turned)
    assert FAMILY.sound(one)
    assert FAMILY.worked(one) == f"{taken} #{one['answer']}"


def test_what_stays_or_is_false_is_no_question() -> None:
    assert not FAMILY.sound(entry(4, [[1, 2], [3, 4]]))
    assert not FAMILY.sound(entry(1, [[2, 4], [1, 3]]))
