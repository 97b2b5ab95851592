"""Hexadecimal arithmetic: forms that are right, forms that are not, and what is no question."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["bitwise_arithmetic"]


def entry(problem: str, answer: str) -> dict[str, object]:
    return {"question": "", "answer": answer, "metadata": {"problem": problem}}


MINUS = entry("(0x10 - 0xab)", "-0x9b")


@pytest.mark.parametrize("text", ["-0x9b", "-0x9B", "-0X9b", " -0x009b\n"])
def test_the_hexadecimal_value_is_right(text: str) -> None:
    assert FAMILY.judge(text, MINUS) == 1.0


@pytest.mark.parametrize(
    "text", ["0x9b", "-9b", "-155", "-0b10011011", "-0x9c", "- 0x9b", "-0x9_b", "0x10 - 0xab", "0xffffff65", ""]
)
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, MINUS) == 0.0


@pytest.mark.parametrize(
    ("problem", "value"),
    [
        ("(0x10 + 0x3)", "0x13"),
        ("((0x10 - 0x20) >> 0x1)", "-0x8"),
        ("((0x10 * 0x11) << 0x3)", "0x880"),
        ("((0x1 << 0x3) - (0x5 * (0x2 + 0x3)))", "-0x11"),
        ("((0x5 - 0x10) >> 0x2)", "-0x3"),  # towards the smaller one
    ],
)
def test_only_a_true_value_is_a_question(problem: str, value: str) -> None:
    assert FAMILY.sound(entry(problem, value))
    assert not FAMILY.sound(entry(problem, "0x7"))


def test_a_value_that_is_shown_is_no_question() -> None:
    assert not FAMILY.sound(entry("(0xabc << 0x0)", "0xabc"))
    assert not FAMILY.sound(entry("0xabc", "0xabc"))
