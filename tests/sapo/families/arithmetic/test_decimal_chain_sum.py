"""Sums of decimals: forms that are right, forms that are not, and false truths."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["decimal_chain_sum"]


def entry(expression: str, answer: str) -> dict[str, object]:
    return {"question": "", "answer": answer, "metadata": {"expression": expression}}


SUM = entry("1.9 - 2.40 - 3.7", "-4.20")


@pytest.mark.parametrize("text", ["-4.20", "-4.2", " -4.200 ", "-04.2", "-4.2\n"])
def test_the_value_is_right(text: str) -> None:
    assert FAMILY.judge(text, SUM) == 1.0


@pytest.mark.parametrize(
    "text",
    ["4.2", "-4.21", "-42e-1", "-4,2", "-4.2.", "- 4.2", "-21/5", "-4.2 or 4.2", "nan"],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, SUM) == 0.0


def test_a_false_truth_is_no_question() -> None:
    assert FAMILY.sound(SUM)
    assert not FAMILY.sound(entry("1.9 - 2.40 - 3.7", "-4.21"))
    assert not FAMILY.sound(entry("1.9 -", "1.9"))


def test_the_work_goes_from_left_to_right() -> None:
    assert FAMILY.worked(entry("3.4 + 2.5", "5.9")) == "3.4 + 2.5 = 5.9. #5.9"
    assert FAMILY.worked(entry("0.8 + 4.6 - 8.4", "-3.0")) == "0.8 + 4.6 = 5.4. 5.4 - 8.4 = -3.0. #-3.0"
