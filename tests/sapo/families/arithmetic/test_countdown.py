"""Countdown: every expression with the value is right, and none is run."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["countdown"]
ENTRY = {"question": "", "answer": "3*(10 - 4) - 11", "metadata": {"numbers": [4, 11, 10, 3], "target": 7}}


@pytest.mark.parametrize(
    "text",
    [
        "3*(10 - 4) - 11",
        "(10-4)*3-11",
        " 3 * ( 10 - 4 ) - 11\n",
        "-11 + 3*(10 - 4)",
        "((3*((10 - 4)))) - 11",
        "(4 - 10)*(-3) - 11",
    ],
)
def test_any_expression_with_the_value_is_right(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "7",
        "3*(10 - 4) - 11 = 7",
        "3*10 - 3*4 - 11",  # 3 twice
        "11 - 4",  # not all of them
        "3*(10 - 4) - 11 + 0",
        "3*(10 - 4) - 1 1",
        "3*(10 - 4 - 11",
        "3×(10 - 4) - 11",
        "3(10 - 4) - 11",
        "10**3 - 4 - 11",
        "10//3 + 4 + 11",
        "3.0*(10 - 4) - 11",
        "4 + 3 + 10 + 11",
        "(10 - 4)*3 - 11 # right",
        "4/(11 - 10 - 3/3)",
        "",
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 0.0


def test_quotients_are_exact() -> None:
    thirds = {"question": "", "answer": "", "metadata": {"numbers": [8, 3, 8, 3], "target": 24}}
    assert FAMILY.judge("8/(3 - 8/3)", thirds) == 1.0
    assert FAMILY.judge("8/(3 - 8/3 )+0", thirds) == 0.0


def test_a_false_truth_is_no_question() -> None:
    assert FAMILY.sound(ENTRY)
    assert not FAMILY.sound({**ENTRY, "answer": "3*(10 - 4) + 11"})
    assert not FAMILY.sound({**ENTRY, "answer": "11 - 4"})


def test_deep_parentheses_are_bounded() -> None:
    for depth in (10, 38, 250):
        assert FAMILY.judge(
            "(" * depth + "3" + ")" * depth, {**ENTRY, "metadata": {"numbers": [3], "target": 3}}
        ) == (depth < 40)


def test_the_work_is_the_equation() -> None:
    assert FAMILY.worked(ENTRY) == "3*(10 - 4) - 11 = 7. #3*(10 - 4) - 11"


def test_numbers_and_target_are_recalled_in_any_order() -> None:
    other = {"question": "else", "metadata": {"numbers": [3, 4, 10, 11], "target": 7}}
    assert FAMILY.content(ENTRY) == FAMILY.content(other)
