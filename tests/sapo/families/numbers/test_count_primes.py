"""Counting primes: what is right, false truths, and the work."""

from __future__ import annotations

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["count_primes"]


def entry(start: int, end: int, answer: int) -> dict[str, object]:
    return {"question": "", "answer": str(answer), "metadata": {"start": start, "end": end}}


@pytest.mark.parametrize("text", ["3", " 3", "+3", "03", "3.0"])
def test_the_number_of_primes_is_right(text: str) -> None:
    assert FAMILY.judge(text, entry(19, 30, 3)) == 1.0


@pytest.mark.parametrize("text", ["4", "19, 23, 29", "three", "3 primes", "-3", "3/1", ""])
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, entry(19, 30, 3)) == 0.0


@pytest.mark.parametrize(
    ("start", "end", "primes"), [(1, 1, 0), (1, 2, 1), (1, 30, 10), (24, 28, 0), (2, 2, 1), (1, 1000, 168)]
)
def test_only_a_true_count_is_a_question(start: int, end: int, primes: int) -> None:
    assert FAMILY.sound(entry(start, end, primes))
    assert not FAMILY.sound(entry(start, end, primes + 1))


def test_the_work_names_them() -> None:
    assert FAMILY.worked(entry(19, 30, 3)) == "19, 23, 29. #3"
    assert FAMILY.worked(entry(24, 28, 0)) == "none. #0"
