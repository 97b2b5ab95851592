"""Sequences: which have one continuation, and how it is found."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["number_sequence"]


def entry(*sequence: int) -> dict[str, object]:
    return {"question": "", "answer": str(sequence[-1]), "metadata": {"sequence": list(sequence)}}


@pytest.mark.parametrize("text", ["-15", " -15", "-15.0", "-015"])
def test_the_next_number_is_right(text: str) -> None:
    assert FAMILY.judge(text, entry(-9, -11, -13, -15)) == 1.0


@pytest.mark.parametrize("text", ["15", "-13", "-17", "-13, -15", "-15, -17", "-13 - 2", "?", ""])
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, entry(-9, -11, -13, -15)) == 0.0


@pytest.mark.parametrize(
    "sequence",
    [
        (3, 5, 7, 9, 11),
        (3, 6, 12, 24, 48),
        (3, 3, 6, 9, 15, 24),
        (-10, -8, -4, 4, 20, 52),
        (3, -3, 3, -3, 3),
        (100, 50, 25, 12, 6),
    ],
)
def test_a_rule_of_one_step_or_two_makes_a_question(sequence: tuple[int, ...]) -> None:
    assert FAMILY.sound(entry(*sequence))
    assert not FAMILY.sound(entry(*sequence[:-1], sequence[-1] + 1))


@pytest.mark.parametrize(
    "sequence",
    [
        (10, 5, 2, 1, 0),  # halves, or differences of 5, 3, 1
        (3, 1, 0, 0, 0, 0),  # the last number once more
        (5, 1, 5, 2, 5),  # no rule of two steps
        (2, 7, 1, 8, 2),
    ],
)
def test_two_continuations_or_a_copy_or_no_rule_make_none(sequence: tuple[int, ...]) -> None:
    assert not FAMILY.sound(entry(*sequence))


def test_the_work_follows_the_shortest_rule() -> None:
    assert FAMILY.worked(entry(3, 5, 7, 9, 11)) == "7 + 2 = 9. 9 + 2 = 11. #11"
    assert FAMILY.worked(entry(3, 3, 6, 9, 15, 24)) == "9 + 6 = 15. 15 + 9 = 24. #24"
    assert FAMILY.worked(entry(-10, -8, -4, 4, 20)) == "-4 + 6 = 2. 2 * 2 = 4. 4 + 6 = 10. 10 * 2 = 20. #20"
    assert FAMILY.worked(entry(100, 50, 25, 12, 6)) == ("Half of 25 is 12. Half of 12 is 6. #6")
    assert FAMILY.worked(entry(-2, 4, 16, 256)) == "4 * 4 = 16. 16 * 16 = 256. #256"
    assert FAMILY.worked(entry(2, -6, 18, -54)) == "-6 * (-3) = 18. 18 * (-3) = -54. #-54"
