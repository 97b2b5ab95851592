"""Powers: three figures are right, neither more nor fewer, and some truths cannot be rounded."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["power_function"]


def entry(base: float, exponent: int, answer: str) -> dict[str, object]:
    return {"question": "", "answer": answer, "metadata": {"base": base, "exponent": exponent}}


SQUARE = entry(6.2058, 2, "38.51195364")
CUBE = entry(-2.0, 3, "-8.0")


@pytest.mark.parametrize("text", ["3.85e+1", "3.85e1", "3.85E+01", "38.5", "38.50", "385e-1", " +3.85e+1\n"])
def test_three_figures_are_right(text: str) -> None:
    assert FAMILY.judge(text, SQUARE) == 1.0


@pytest.mark.parametrize(
    "text", ["38.51", "3.9e+1", "3.86e+1", "-3.85e+1", "3.85e+2", "3.85e+001", "3.85*10^1", "inf", ""]
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, SQUARE) == 0.0


def test_signs_and_reciprocals() -> None:
    assert FAMILY.sound(CUBE) and FAMILY.solution(CUBE) == "-8.00e+0"
    assert FAMILY.judge("-8", CUBE) == 1.0 and FAMILY.judge("8", CUBE) == 0.0
    assert FAMILY.solution(entry(8.0, -2, "0.015625")) == "1.56e-2"


def test_no_power_and_two_ways_to_round_and_a_false_truth_are_no_questions() -> None:
    assert FAMILY.sound(SQUARE)
    assert not FAMILY.sound(entry(6.2058, 0, "1.0"))
    assert not FAMILY.sound(entry(6.2058, 1, "6.2058"))
    assert not FAMILY.sound(entry(6.2058, 2, "38.6"))
    assert not FAMILY.sound(entry(3.5, 2, "12.25"))  # 12.2 or 12.3
    assert FAMILY.sound(entry(3.51, 2, "12.3201"))
