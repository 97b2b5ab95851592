"""Word ladders: every one is right, of any length; nothing else is."""

from __future__ import annotations

from itertools import product
from string import ascii_uppercase
from typing import Any

import pytest

from app.sapo import library
from app.sapo.families import FAMILIES
from app.sapo.questions import draw

FAMILY = FAMILIES["word_ladder"]


def entry(ladder: str) -> dict[str, Any]:
    words = ["BAG", "BAT", "BOG", "CAR", "CAT", "COG", "COT", "DOG", "DOT"]
    return {"question": "", "answer": ladder, "metadata": {"ladder": ladder.split(","), "words": words}}


ENTRY = entry("CAT,COT,COG,DOG")


@pytest.mark.parametrize(
    "text",
    [
        "CAT,COT,COG,DOG",
        "CAT, COT, COG, DOG\n",
        "cat,cot,dot,dog",
        "CAT,BAT,BAG,BOG,DOG",
    ],
)
def test_every_ladder_between_the_two_words_is_right(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "CAT,DOG",
        "CAT,COT,DOG",
        "CAT,CAD,COD,DOD,DOG",
        "CAT,CQT,COT,COG,DOG",
        "CAT,COT,COG",
        "COT,COG,DOG",
        "DOG,COG,COT,CAT",
        "CAT,COT,COG,DOG,",
        "CAT,COT,COT,COG,DOG",
        "CAT,COT,CAT,COT,DOT,DOG",
        "CAT,CART,COT,COG,DOG",
        "CAT COT COG DOG",
        "CAT,COT,C\u041eG,DOG",
        "CAT",
        ",",
        "",
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, ENTRY) == 0.0


def test_of_all_three_letters_only_a_listed_word_makes_the_step() -> None:
    middle = ["".join(letters) for letters in product(ascii_uppercase, repeat=3)]
    short = entry("CAT,COT,COG")
    assert [word for word in middle if FAMILY.judge(f"CAT,{word},COG", short)] == ["COT"]


@pytest.mark.parametrize("level", range(len(FAMILY.levels)))
def test_ladders_are_as_long_as_their_level_says_and_the_library_finds_no_fault(level: int) -> None:
    theirs = library.gym().get_score_answer_fn("word_ladder")
    for seed in range(100):
        question = draw("word_ladder", level, seed * 10**8)
        ladder = question.entry["metadata"]["ladder"]
        assert len(ladder) == FAMILY.levels[level]["steps"] + 1
        listed = question.text.partition("at most once: ")[2].partition(".\n")[0].split(", ")
        assert f"'{ladder[0]}' into '{ladder[-1]}'" in question.text
        assert listed == sorted(set(listed)) and set(ladder) < set(listed)
        assert len(listed) <= FAMILY.levels[level]["words"]
        if FAMILY.levels[level]["letters"] == 4:  # the only words that the library's scorer has read
            asked = dict(start_word=ladder[0], end_word=ladder[-1])
            assert theirs(question.entry["answer"], {"metadata": asked}) == 1.0


def test_the_way_back_is_held_out_with_the_way_there() -> None:
    assert FAMILY.content(ENTRY) == FAMILY.content(entry("DOG,DOT,COT,CAT"))


def test_the_work_changes_letter_by_letter() -> None:
    assert FAMILY.worked(ENTRY) == "CAT, A to O: COT. COT, T to G: COG. COG, C to D: DOG. #CAT,COT,COG,DOG"
