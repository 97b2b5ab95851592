"""Filtering numbers: forms that are right, forms that are not, and what is no question."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["number_filtering"]


def entry(operation: str, limit: str, *numbers: str, answer: str = "") -> dict[str, object]:
    metadata = {"operation": operation, "filter_value": limit, "original_numbers": list(numbers)}
    return {"question": "", "answer": answer, "metadata": metadata}


KEEP = entry("keep_larger", "12", "23", "1", "12", "29.50", answer="['23', '29.50']")


@pytest.mark.parametrize(
    "text",
    ["['23', '29.50']", "[23, 29.50]", "23, 29.5", "['23','29.5']", '["23", "29.500"]', " [23.0, +29.5] "],
)
def test_the_numbers_that_stay_are_right_in_any_form(text: str) -> None:
    assert FAMILY.judge(text, KEEP) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "['29.50', '23']",  # another order
        "['23']",
        "['23', '29.50', '29.50']",
        "['1', '12']",
        "['23', '12', '29.50']",  # 12 is not larger than 12
        "['23' '29.50']",
        "['23', '29.5O']",
        "['23', '29.50'",
        "23 29.50",
        "[]",
        "",
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, KEEP) == 0.0


@pytest.mark.parametrize(
    ("operation", "stays"),
    [("keep_larger", "7"), ("remove_larger", "3, 5"), ("keep_smaller", "3"), ("remove_smaller", "5, 7")],
)
def test_the_limit_itself_is_neither_larger_nor_smaller(operation: str, stays: str) -> None:
    assert FAMILY.judge(stays, entry(operation, "5", "3", "5", "7")) == 1.0


def test_all_and_nothing_and_a_false_truth_are_no_questions() -> None:
    assert FAMILY.sound(KEEP)
    assert not FAMILY.sound(entry("keep_larger", "12", "13", "14", answer="['13', '14']"))
    assert not FAMILY.sound(entry("keep_larger", "12", "3", "4", answer="[]"))
    assert not FAMILY.sound({**KEEP, "answer": "['23']"})
    assert FAMILY.sound(entry("keep_larger", "4", "5", "3", "5.00", answer="['5', '5']"))


def test_the_work_looks_at_each_number() -> None:
    assert FAMILY.worked(KEEP) == "23 yes, 1 no, 12 no, 29.50 yes. #['23', '29.50']"
