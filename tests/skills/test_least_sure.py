"""The rows that a skill asks about: the least sure ones, and none twice in other words."""

from __future__ import annotations

from app.skills.answering import SkillAnswer
from app.skills.least_sure import least_sure


def said(sure: float) -> SkillAnswer:
    return SkillAnswer(text="a", sure=sure, labels={"a": sure, "b": 1 - sure})


def test_texts_that_are_nearly_alike_are_asked_once_while_there_are_others() -> None:
    texts = [f"Your order {n} has been shipped today" for n in range(20)] + [
        "Lunch on Friday?",
        "Invoice 77 is due",
    ]
    answers = [said(0.51 + n / 1000) for n in range(20)] + [said(0.8), said(0.9)]
    assert least_sure(texts, answers, 3) == [0, 20, 21]
    assert least_sure(texts, answers, 5) == [0, 20, 21, 1, 2], "then the others, least sure first"


def test_what_could_not_be_read_is_left_out_and_no_more_are_given_than_there_are() -> None:
    assert least_sure(["one", "two", "three"], [None, said(0.9), said(0.6)], 10) == [2, 1]
    assert least_sure([], [], 10) == []
