"""Families whose answer is a list or a grid: sorting, distance grids, rows of colours."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from app.sapo.scorers import reading


def sorting(answer: str, entry: Mapping[str, Any]) -> float:
    """1 for exactly the numbers of the question in the order asked for; `6`, `6.0` and `'6.0'` are the same
    number. The library would accept numbers that are one off."""
    return float(reading.numbers(answer) == [Decimal(number) for number in entry["metadata"]["sorted_numbers"]])


def distances(answer: str, entry: Mapping[str, Any]) -> float:
    """1 for the grid: a line for each row, spaces between the numbers."""
    return float(reading.rows(answer) == entry["metadata"]["solution"])


def colours(answer: str, entry: Mapping[str, Any]) -> float:
    """1 for the row, in the form of the question: one line, spaces between the digits."""
    return float(reading.rows(answer) == [entry["metadata"]["test_example"]["output"]])


def sound_distances(entry: Mapping[str, Any]) -> bool:
    """Whether some cell is further than 1 from a zero. In 23 % of level 0 none is, and the answer is the
    question."""
    return bool(entry["metadata"]["solution"] != entry["metadata"]["matrix"])


def sound_colours(entry: Mapping[str, Any]) -> bool:
    """Whether the rule changes the test row, and the row is not one of the examples: else the answer can be
    copied (7 % of level 0)."""
    test = entry["metadata"]["test_example"]
    examples = entry["metadata"]["train_examples"]
    return test["input"] != test["output"] and all(test["input"] != example["input"] for example in examples)
