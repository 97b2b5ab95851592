"""Jumbled letters: the words in any case, and only such that are no other word's letters."""

from __future__ import annotations

from typing import Any

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["letter_jumble"]


def entry(scrambled: str, words: str) -> dict[str, Any]:
    metadata = dict(scrambled_words=scrambled.split(), original_words=words.split())
    return {"question": "", "answer": words, "metadata": metadata}


ENTRY = entry("htink coorl", "think Color")


@pytest.mark.parametrize("text", ["think Color", "Think color", " THINK   COLOR\n"])
def test_the_words_in_any_case_are_right(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "htink coorl",
        "color think",
        "think",
        "think color color",
        "think, color",
        "thinkcolor",
        "thin\u212a color",
        "t h i n k color",
        "",
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 0.0


def test_words_with_anagrams_and_words_as_they_are_no_questions() -> None:
    assert FAMILY.sound(entry("htink", "think"))
    assert FAMILY.sound(entry("htink which", "think which"))
    assert not FAMILY.sound(entry("think", "think"))
    assert not FAMILY.sound(entry("onw", "now"))
    assert not FAMILY.sound(entry("htink onw", "think now"))
    assert not FAMILY.sound(entry("Steah", "Heats"))
    assert not FAMILY.sound(entry("aërail", "aërial"))


def test_other_cases_of_a_word_are_held_out_with_it() -> None:
    assert FAMILY.content(entry("htiNk", "thiNk")) == FAMILY.content(entry("Thikn", "Think"))


def test_the_work_takes_the_words_apart() -> None:
    assert FAMILY.worked(ENTRY) == "h t i n k: t h i n k. c o o r l: C o l o r. #think Color"
