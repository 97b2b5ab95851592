"""Swaps until the bits take turns: against a search through all orders."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import pytest

from app.sapo.families import FAMILIES

FAMILY = FAMILIES["binary_alternation"]


def entry(bits: str, answer: int) -> dict[str, Any]:
    return {"question": "", "answer": str(answer), "metadata": {"string": bits}}


def swaps(bits: str) -> int:
    """By breadth-first search over single swaps."""
    seen, edge, steps = {bits}, {bits}, 0
    while edge:
        if any(all(a != b for a, b in pairwise(row)) for row in edge):
            return steps
        steps += 1
        edge = {
            row[:i] + row[j] + row[i + 1 : j] + row[i] + row[j + 1 :]
            for row in edge
            for i in range(len(row))
            for j in range(i + 1, len(row))
        } - seen
        seen |= edge
    return -1


def test_of_all_short_rows_exactly_the_least_swaps_are_the_truth() -> None:
    for length in (3, 4, 5, 6, 7):
        for bits in map("".join, product("01", repeat=length)):
            truth = swaps(bits)
            assert [n for n in range(-2, 6) if FAMILY.sound(entry(bits, n))] == [truth], bits


@pytest.mark.parametrize("text", ["-1", " -1\n", "-1.0", "-01"])
def test_a_whole_number_is_read(text: str) -> None:
    assert FAMILY.judge(text, entry("0001", -1)) == 1.0


@pytest.mark.parametrize("text", ["1", "impossible", "- 1", "−1", "-1 swaps", ""])
def test_anything_else_is_wrong(text: str) -> None:
    assert FAMILY.judge(text, entry("0001", -1)) == 0.0


def test_the_work_compares_with_the_nearest_row_in_turn() -> None:
    assert FAMILY.worked(entry("0110", 1)) == "0110 to 0101: 2 differ, 2 / 2 = 1. #1"
    assert FAMILY.worked(entry("1011", -1)) == "1 zeros, 3 ones: impossible. #-1"
    assert FAMILY.worked(entry("001011", 1)) == "001011 to 101010: 2 differ, 2 / 2 = 1. #1"
    assert FAMILY.worked(entry("0001", -1)) == "3 zeros, 1 ones: impossible. #-1"
