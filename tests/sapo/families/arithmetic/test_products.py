"""Products: what is right, what is no question, and how they are worked out."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["products"]


def entry(expression: str, answer: str) -> dict[str, object]:
    return {"question": "", "answer": answer, "metadata": {"expression": expression}}


@pytest.mark.parametrize("text", ["1081", "1,081", "+1081", "01081", "1081.0", " 1081\n"])
def test_the_product_is_right(text: str) -> None:
    assert FAMILY.judge(text, entry("23 * 47", "1081")) == 1.0


@pytest.mark.parametrize("text", ["1080", "-1081", "23 * 47", "= 1081", "1081 1081", "1.081e3", "70", ""])
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, entry("23 * 47", "1081")) == 0.0


@pytest.mark.parametrize(("expression", "answer"), [("7 * 1", "7"), ("0 * 3", "0"), ("3 * 4", "13")])
def test_a_factor_that_is_the_answer_and_a_false_truth_are_no_question(expression: str, answer: str) -> None:
    assert FAMILY.sound(entry("3 * 4", "12"))
    assert not FAMILY.sound(entry(expression, answer))


def test_the_work_goes_digit_by_digit() -> None:
    assert FAMILY.worked(entry("3 * 4", "12")) == "3 * 4 = 12. #12"
    assert FAMILY.worked(entry("2 * 3 * 4", "24")) == "2 * 3 = 6. 6 * 4 = 24. #24"
    assert FAMILY.worked(entry("23 * 407", "9361")) == "23 * 400 = 9200. 23 * 7 = 161. 9200 + 161 = 9361. #9361"
    assert FAMILY.worked(entry("23 * 40", "920")) == "23 * 40 = 920. #920"


def test_3_times_4_and_4_times_3_are_one_content() -> None:
    assert FAMILY.content(entry("3 * 4", "12")) == FAMILY.content(entry("4 * 3", "12"))
    assert FAMILY.content(entry("3 * 4", "12")) != FAMILY.content(entry("2 * 6", "12"))
