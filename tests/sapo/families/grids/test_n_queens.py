"""Queens: every board that keeps those that stand and has no attack is right."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["n_queens"]


def board(*columns: int | None) -> str:
    return "\n".join(" ".join("Q" if c == column else "_" for c in range(len(columns))) for column in columns)


def entry(columns: tuple[int | None, ...], answer: str) -> dict[str, object]:
    return {
        "question": "",
        "answer": answer,
        "metadata": {"puzzle": [row.split() for row in board(*columns).split("\n")]},
    }


ENTRY = entry((0, None, None, None, None), board(0, 2, 4, 1, 3))


@pytest.mark.parametrize(
    "text", [board(0, 2, 4, 1, 3), board(0, 3, 1, 4, 2), board(0, 2, 4, 1, 3).replace(" ", "  ")]
)
def test_every_such_board_is_right(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        board(0, None, None, None, None),
        board(1, 3, 0, 2, 4),  # peaceful, but the queen that stood there has gone
        board(0, 1, 2, 3, 4),
        board(0, 2, 4, 1, 1),
        board(0, 2, 4, 1, None),
        board(0, 2, 4, 1),
        board(0, 2, 4, 1, 3) + "\n_ _ _ _ _",
        board(0, 2, 4, 1, 3).replace("_", "."),
        board(0, 2, 4, 1, 3).replace("Q", "q"),
        board(0, 2, 4, 1, 3).replace(" ", ""),
        board(0, 2, 4, 1, 3).replace("\n", " "),
        board(0, 2, 4, 1, 3).replace("_ _ _ Q _", "Q _ _ Q _"),
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 0.0


def test_a_false_answer_is_no_question() -> None:
    assert FAMILY.sound(ENTRY)
    assert not FAMILY.sound(entry((0, None, None, None, None), board(0, 1, 2, 3, 4)))


def test_the_work_names_the_places() -> None:
    one = entry((0, 2, None, 1, None), board(0, 2, 4, 1, 3))
    assert FAMILY.worked(one) == f"Queens at (3,5) (5,4). #{one['answer']}"
