"""Sorted words: forms that are right, forms that are not, and what is no question."""

from __future__ import annotations

from typing import Any

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["word_sorting"]


def entry(given: list[str], ordered: list[str], direction: str = "ascending") -> dict[str, Any]:
    metadata = dict(transformed_words=given, sorted_words=ordered, direction=direction)
    return {"question": "", "answer": ", ".join(ordered), "metadata": metadata}


ENTRY = entry(["son", "Earth", "so"], ["Earth", "so", "son"])


@pytest.mark.parametrize("text", ["Earth, so, son", "Earth,so,son", "Earth , so , son\n"])
def test_white_space_around_the_words_does_not_matter(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "son, so, Earth",
        "Earth, son, so",
        "earth, so, son",
        "so, son, Earth",
        "Earth, so",
        "Earth, so, son, sons",
        "Earth so son",
        "'Earth', 'so', 'son'",
        "Earth; so; son",
        "",
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 0.0


def test_only_plain_words_in_another_order_are_a_question() -> None:
    assert FAMILY.sound(ENTRY)
    assert FAMILY.sound(entry(["a", "b"], ["b", "a"], "descending"))
    assert not FAMILY.sound(entry(["a", "b"], ["a", "b"]))
    assert not FAMILY.sound(entry(["b", "a"], ["a", "b"], "descending"))
    assert not FAMILY.sound(entry(["b", "_a_"], ["_a_", "b"]))
    assert not FAMILY.sound(entry(["b", "aërial"], ["aërial", "b"]))


def test_the_work_looks_at_the_first_letters() -> None:
    assert FAMILY.worked(ENTRY) == "First letters: s E s. Ascending: E s s. #Earth, so, son"
