"""Ways to write numbers: each of them is right, and only for the number that is asked for."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["number_format"]


def entry(size: str, answer: str, *numbers: str) -> dict[str, object]:
    return {"question": "", "answer": answer, "metadata": {"size": size, "formatted_candidates": list(numbers)}}


SHOWN = ("7,821.5900000000002", "7820.001000", "7.821815000000001e+03")
LARGEST = entry("largest", "7821.815000000001", *SHOWN)


@pytest.mark.parametrize(
    "text", ["7821.815", "7,821.815", "7.821815000000001e+03", "7.821815e+03", "7821.815000", " 7821.815 "]
)
def test_the_number_is_right_in_every_way_to_write_it(text: str) -> None:
    assert FAMILY.judge(text, LARGEST) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "7821.59",
        "7821.814",
        "7821.81",
        "7821",
        "7.821815e3",
        "7821815e-03",
        "7.821815e+99",
        "the largest",
        "-7821.815",
        "",
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, LARGEST) == 0.0


def test_the_smallest() -> None:
    smallest = entry("smallest", "7820.001", *SHOWN)
    assert FAMILY.sound(smallest) and FAMILY.solution(smallest) == "7820.001"


def test_a_tie_and_a_false_truth_and_a_number_that_cannot_be_read_are_no_questions() -> None:
    assert FAMILY.sound(LARGEST)
    assert not FAMILY.sound(entry("largest", "7821.815", *SHOWN, "7821.815000"))
    assert not FAMILY.sound(entry("largest", "7820.001", *SHOWN))
    assert not FAMILY.sound(entry("largest", "7821.815", *SHOWN, "inf"))


def test_the_work_leaves_decimals_out_where_they_decide_nothing() -> None:
    assert FAMILY.worked(entry("smallest", "7820.001", *SHOWN)) == "7821, 7820, 7821. #7820.001"
    assert FAMILY.worked(LARGEST) == "7821.59, 7820.001, 7821.815. #7821.815"
