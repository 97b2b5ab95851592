"""Complex numbers: forms that are right, forms that are not, and the arithmetic."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["complex_arithmetic"]


def entry(a: complex, operation: str, b: complex, answer: str) -> dict[str, object]:
    metadata = {"num1": (a.real, a.imag), "num2": (b.real, b.imag), "operation": operation}
    return {"question": "", "answer": answer, "metadata": metadata}


BOTH = entry(7 + 1j, "-", 3 + 2j, "4.0 - 1.0i")
REAL = entry(7 + 8j, "-", 3 + 8j, "4.00")
IMAGINARY = entry(7 + 8j, "-", 7 + 7j, "1.00i")


@pytest.mark.parametrize("text", ["4.0 - 1.0i", "4-1i", "4 - i", "-i + 4", "+4 - 1.00i", " 4 -1i\n", "-1i+4.0"])
def test_real_and_imaginary_part_are_right_in_any_order(text: str) -> None:
    assert FAMILY.judge(text, BOTH) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "4 + 1i",
        "4",
        "-i",
        "4 1i",
        "4 - 1",
        "4i - 1",
        "(4, -1)",
        "((4 - i))",
        "(4 - i",
        "[4 - i]",
        "4 - 1j",
        "4 - -1i",
        "nan",
        "4+-i",
    ],
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, BOTH) == 0.0


def test_a_part_that_is_nothing_may_be_left_out_or_written() -> None:
    assert [FAMILY.judge(text, REAL) for text in ("4", "4.00", "4 + 0i", "0i + 4", "4i")] == [1, 1, 1, 1, 0]
    assert [FAMILY.judge(text, IMAGINARY) for text in ("i", "1i", "0 + i", "+i", "1")] == [1, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("question", "truth"),
    [
        (entry(3 - 9j, "*", -2 + 6j, "48.0 + 36.0i"), "48 + 36i"),
        (entry(192 + 144j, "/", -4 + 12j, "6.0 - 18.0i"), "6 - 18i"),
        (entry(1 + 2j, "+", 3 - 2j, "4.00"), "4"),
        (entry(1 + 2j, "-", 1 + 4j, "-2.00i"), "-2i"),
    ],
)
def test_the_truth_is_worked_out_anew(question: dict[str, object], truth: str) -> None:
    assert FAMILY.sound(question) and FAMILY.solution(question) == truth
    assert not FAMILY.sound({**question, "answer": "5.0 + 5.0i"})


def test_a_quotient_that_is_not_whole_is_no_question() -> None:
    assert not FAMILY.sound(entry(1 + 0j, "/", 2 + 0j, "0.00"))


def test_the_work_goes_part_by_part() -> None:
    assert FAMILY.worked(BOTH) == "7 - 3 = 4. 1 - 2 = -1. #4 - 1i"
    assert FAMILY.worked(entry(1 + 2j, "*", 3 - 4j, "11.0 + 2.0i")) == (
        "1 * 3 = 3. 2 * (-4) = -8. 3 - (-8) = 11. 1 * (-4) = -4. 2 * 3 = 6. -4 + 6 = 2. #11 + 2i"
    )
