"""Sisters and friends: what follows from what is told, and what is asked of nobody."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["aiw"]
SISTERS = "Alice has 2 brothers and she also has 3 sisters. How many sisters does Alice's brother have?"
FRIENDS = (
    "Alice has 4 male friends and she also has 12 female friends. They all are friends with each other and "
    "have no other friends aside. How many female friends does Bob, a male friend of Alice, have?"
)


def entry(question: str, answer: str, kind: str = "siblings") -> dict[str, object]:
    return {"question": question, "answer": answer, "metadata": {"task_type": kind}}


@pytest.mark.parametrize(
    ("text", "score"), [("4", 1), (" 04\n", 1), ("3", 0), ("3 + 1", 0), ("four", 0), ("5", 0)]
)
def test_she_is_a_sister_herself(text: str, score: int) -> None:
    assert FAMILY.judge(text, entry(SISTERS, "4")) == score


def test_the_work_names_her() -> None:
    assert FAMILY.worked(entry(SISTERS, "4")) == "3 sisters and Alice: 3 + 1 = 4. #4"
    assert FAMILY.worked(entry(FRIENDS, "13", "friends")) == "12 female friends and Alice: 12 + 1 = 13. #13"


def test_somebody_elses_brother_and_a_false_truth_are_no_questions() -> None:
    assert FAMILY.sound(entry(SISTERS, "4")) and FAMILY.sound(entry(FRIENDS, "13", "friends"))
    assert not FAMILY.sound(entry(SISTERS.replace("does Alice's", "does James's"), "4"))
    assert not FAMILY.sound(entry(SISTERS, "3"))


def test_other_names_are_the_same_question() -> None:
    mary = SISTERS.replace("Alice", "Mary")
    assert FAMILY.content(entry(SISTERS, "4")) == FAMILY.content(entry(mary, "4"))
    assert FAMILY.content(entry(SISTERS, "4")) != FAMILY.content(entry(SISTERS.replace("2", "5"), "4"))
