"""Words backward: forms that are right, forms that are not, and what is no question."""

from __future__ import annotations

from typing import Any

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["word_sequence_reversal"]


def entry(*words: str) -> dict[str, Any]:
    return {"question": "", "answer": ", ".join(reversed(words)), "metadata": {"words": list(words)}}


ENTRY = entry("the", "sun", "The")


@pytest.mark.parametrize("text", ["The, sun, the", "The,sun,the", " The ,\tsun , the\n"])
def test_white_space_around_the_words_does_not_matter(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "the, sun, The",
        "the, sun, the",
        "The sun the",
        "The, sun",
        "The, sun, the,",
        "The, , sun, the",
        "The, sun, the, sun",
        "['The', 'sun', 'the']",
        "ehT, nus, eht",
        "",
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 0.0


def test_only_words_whose_order_matters_are_a_question() -> None:
    assert FAMILY.sound(ENTRY)
    assert FAMILY.sound(entry("2889", "sun"))
    assert not FAMILY.sound(entry("sun", "the", "sun"))
    assert not FAMILY.sound(entry("_Forum_", "sun"))
    assert not FAMILY.sound(entry("à", "sun"))


def test_the_work_numbers_the_words() -> None:
    assert FAMILY.worked(ENTRY) == "1 the 2 sun 3 The. Back: 3 The 2 sun 1 the. #The, sun, the"
