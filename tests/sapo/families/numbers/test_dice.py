"""Dice: the reduced fraction is right, and no other."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["dice"]


def entry(dice: str, target: int, answer: str) -> dict[str, object]:
    return {"question": "", "answer": answer, "metadata": {"puzzle": {"dice_str": dice, "target": target}}}


SEVEN = entry("1d6, 1d6", 7, "7/12")


@pytest.mark.parametrize("text", ["7/12", " 7 / 12 ", "$7/12$", r"\frac{7}{12}", "07/12"])
def test_the_reduced_fraction_is_right(text: str) -> None:
    assert FAMILY.judge(text, SEVEN) == 1.0


@pytest.mark.parametrize(
    "text", ["21/36", "14/24", "5/12", "0.5833", "58%", "7:12", "7/12/1", "1/60", "-7/-12", "7"]
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, SEVEN) == 0.0


@pytest.mark.parametrize(
    ("dice", "target", "chance"), [("1d6", 3, "2/3"), ("1d12, 1d3", 8, "7/12"), ("1d4, 1d3, 1d2", 9, "1/24")]
)
def test_only_a_true_chance_is_a_question(dice: str, target: int, chance: str) -> None:
    assert FAMILY.sound(entry(dice, target, chance))
    assert not FAMILY.sound(entry(dice, target, "5/7"))


def test_the_work_goes_through_the_throws_of_the_smaller_dice() -> None:
    assert FAMILY.worked(entry("1d12, 1d3", 8, "7/12")) == ("6 + 7 + 8 = 21. 12 * 3 = 36. 21/36 = 7/12. #7/12")
    assert FAMILY.worked(entry("1d20, 1d19, 1d18, 1d16", 43, "3913/10944")) == ""
