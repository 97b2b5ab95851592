"""Ways of asking: prompts, and what counts as an answer."""

from __future__ import annotations

from random import Random

import pytest

from app.sapo.asking import BRIEF, MAX_ANSWER, TAGGED, Example, extract_answer, extract_leniently, messages
from app.sapo.reading.expression import has_false_equation


def test_examples_are_earlier_turns_of_the_same_talk() -> None:
    shown = messages("2 + 2 =", BRIEF, [Example(question="1 + 1 =", answer="1 + 1 = 2. #2")])
    assert [turn["role"] for turn in shown] == ["system", "user", "assistant", "user"]
    assert shown[0]["content"] == BRIEF.system and shown[-1]["content"] == "2 + 2 ="
    assert messages("q") == messages("q", TAGGED)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>7</answer>", "7"),
        ("<answer>**7**.</answer>", "7"),
        ("4 - 1 = 3. #3", "3"),
        ("# \u22123.", "-3"),
        ("so \\boxed{12}", "12"),
        ("so $\\boxed{\\frac{1}{2}}$.", "\\frac{1}{2}"),
        ("\\boxed{1} or rather #2", "2"),
        ("#1 or rather \\boxed{2}", "2"),
        ("#$1/2$", "1/2"),
        ("4 * 7 = 28. #28\n\nSolve", "28"),
        ("#28\nSolve 3 * 4. 12", "28"),
        ("#\n28\n\nNext", "28"),
        ("#28\n\n2 * 3 = 6. #6", "6"),
        ("rows. #4 3 1\n2 1 3\n\nSolve this", "4 3 1\n2 1 3"),
        ("#4 3\n2 1\nSolve this", "4 3\n2 1"),
        ("#```\n1 0\n0 1\n```", "1 0\n0 1"),
        ("#28\n29\n30", "28\n29\n30"),
        ("\\boxed{1", None),
        ("it is 7", None),
        ("#", None),
        ("<answer>1<answer>2", None),
    ],
)
def test_what_counts_as_an_answer(text: str, answer: str | None) -> None:
    assert extract_answer(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [("It is 7.", "7"), ("4 + 3 = 7, so -2", "-2"), ("yes", "yes"), ("7 #8", "8"), ("", None)],
)
def test_a_lenient_reader_takes_the_last_number_or_line(text: str, answer: str | None) -> None:
    assert extract_leniently(text) == answer


def test_nothing_hostile_comes_through_longer_than_an_answer_may_be() -> None:
    dice, pieces = (
        Random(1),
        ["#", "\\boxed{", "{", "}", "<answer>", "</answer>", "9" * 600, "$", "**", ".", " "],
    )
    for _ in range(2000):
        text = "".join(dice.choices(pieces, k=dice.randrange(12)))
        for found in (extract_answer(text), extract_leniently(text)):
            assert found is None or 0 < len(found) <= MAX_ANSWER
    assert extract_leniently("1" * 1_000_000) is not None and extract_leniently("x" * 1_000_000) is None


def test_marks_around_an_answer_are_taken_off_to_a_bound() -> None:
    """One by one, a million took hours; so did a text of blanks without an equation."""
    assert extract_answer("#" + "=" * 40 + "7" + "." * 40) == "7"
    assert (
        extract_answer("#" + "=" * 1_000_000 + "7") is None and extract_answer("#7" + "." * 1_000_000) is None
    )
    assert not has_false_equation("1 " * 500_000 + "=") and has_false_equation("1 + " * 90 + "1 = 90")
