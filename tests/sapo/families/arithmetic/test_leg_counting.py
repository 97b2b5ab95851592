"""Counting legs: what is right, whose legs are counted, and how."""

from __future__ import annotations

import pytest

from app.sapo import library
from app.sapo.families import FAMILIES
from app.sapo.families.stories import LEGS

FAMILY = FAMILIES["leg_counting"]


def entry(answer: str, **animals: int) -> dict[str, object]:
    return {"question": "", "answer": answer, "metadata": {"animals": animals}}


@pytest.mark.parametrize("text", ["24", " 24 ", "+24", "024", "24.0"])
def test_the_number_of_legs_is_right(text: str) -> None:
    assert FAMILY.judge(text, entry("24", dog=3, ant=2)) == 1.0


@pytest.mark.parametrize("text", ["24 legs", "25", "5", "12 + 12", "twenty-four", "-24", "2.4e1", ""])
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, entry("24", dog=3, ant=2)) == 0.0


def test_arms_and_unknown_animals_and_no_legs_at_all_are_no_question() -> None:
    assert FAMILY.sound(entry("24", dog=3, ant=2, snake=7))
    assert not FAMILY.sound(entry("29", dog=3, ant=2, starfish=1))
    assert not FAMILY.sound(entry("12", dragon=3))
    assert not FAMILY.sound(entry("0", snake=3))
    assert not FAMILY.sound(entry("25", dog=3, ant=2))


def test_the_legs_are_those_of_the_library_but_for_a_starfish() -> None:
    library.gym()
    from reasoning_gym.arithmetic.leg_counting import ANIMALS

    assert ANIMALS == LEGS | {"starfish": 5}


def test_the_work_counts_animal_by_animal() -> None:
    assert FAMILY.worked(entry("12", dog=3)) == "dog: 3 * 4 = 12. #12"
    assert FAMILY.worked(entry("24", dog=3, ant=2)) == "dog: 3 * 4 = 12. ant: 2 * 6 = 12. 12 + 12 = 24. #24"
