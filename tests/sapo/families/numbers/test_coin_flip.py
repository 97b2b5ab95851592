"""Chances of tosses: exact ones in any form, against counting all the rows of tosses."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["coin_flip"]


def entry(tosses: int, heads: int, kind: str = "exact", answer: str = "0.375") -> dict[str, Any]:
    return {
        "question": "",
        "answer": answer,
        "metadata": dict(num_trials=tosses, k_heads=heads, problem_type=kind),
    }


@pytest.mark.parametrize("text", ["3/8", "0.375", "6/16", ".375", "0.3750", r"\frac{3}{8}", " 3 / 8\n"])
def test_every_form_of_the_chance_is_right(text: str) -> None:
    assert FAMILY.judge(text, entry(3, 2)) == 1.0


@pytest.mark.parametrize(
    "text",
    ["0.3751", "0.38", "38%", "0.375%", "37.5", "3/9", "5/8", "3/0", "0/0", "3:8", "3 of 8", "-3/8", "1", ""],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, entry(3, 2)) == 0.0


def test_the_chance_is_that_of_all_rows_of_tosses() -> None:
    for tosses in range(1, 9):
        rows = [sum(row) for row in product((0, 1), repeat=tosses)]
        for heads in range(tosses + 1):
            for kind, fitting in (("exact", rows.count(heads)), ("at_least", sum(n >= heads for n in rows))):
                chance = Fraction(fitting, len(rows))
                assert FAMILY.solution(entry(tosses, heads, kind)) == str(chance)
                assert FAMILY.sound(entry(tosses, heads, kind, str(float(chance)))) == (chance != 1)
                assert not FAMILY.sound(entry(tosses, heads, kind, str(float(chance) + 0.001)))


def test_rounded_truths_are_no_question() -> None:
    assert not FAMILY.sound(entry(15, 0, answer=format(0.5**15, ".10g")))


def test_the_work_counts_the_ways() -> None:
    assert FAMILY.worked(entry(3, 2)) == "2 * 2 * 2 = 8 ways, 3 fit. #3/8"
    assert FAMILY.worked(entry(4, 2)) == "2 * 2 * 2 * 2 = 16 ways, 6 fit. 6/16 = 3/8. #3/8"
