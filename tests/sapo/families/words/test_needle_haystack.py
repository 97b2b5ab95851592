"""The one who does it: forms of a name, and stories with one answer."""

from __future__ import annotations

from typing import Any

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["needle_haystack"]


def entry(*statements: str, asked: str = "is keen on pigs", answer: str = "D'arcy") -> dict[str, Any]:
    story = "".join(f"{one}. " for one in statements)
    return {"question": f"{story}\nWho {asked}? Reply only with a name.", "answer": answer, "metadata": {}}


ENTRY = entry("Abdul-Aziz is keen on cats", "D'arcy is keen on pigs", "Kody loves pigs")


@pytest.mark.parametrize("text", ["D'arcy", "d'arcy", "D'ARCY", " D'arcy\n"])
def test_the_name_in_any_case_is_right(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "Kody",
        "D'arcy, Kody",
        "D'arcy is keen on pigs",
        "Darcy",
        "D' arcy",
        "D\u2019arcy",
        "D'arcy.",
        "pigs",
        "",
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 0.0


def test_letters_that_only_become_the_same_are_others() -> None:
    assert FAMILY.judge("\u212aody", entry("Kody is keen on pigs", answer="Kody")) == 0.0  # the kelvin sign


def test_a_question_has_one_answer_and_it_is_the_truth() -> None:
    assert FAMILY.sound(ENTRY)
    assert not FAMILY.sound(entry("D'arcy is keen on pigs", "Kody is keen on pigs"))
    assert not FAMILY.sound(entry("Kody is keen on pigs", "D'arcy is keen on cats"))
    assert not FAMILY.sound(entry("D'arcy is keen on guinea pigs"))


def test_the_work_repeats_the_statement() -> None:
    assert FAMILY.worked(ENTRY) == "D'arcy is keen on pigs. #D'arcy"
