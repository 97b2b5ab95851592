"""Scores shared by several families. Each is 1 for the true answer, in the forms that `app.sapo.reading`
accepts, else 0."""

from __future__ import annotations

from decimal import Decimal

from app.sapo import reading
from app.sapo.families.family import Entry


def integer(answer: str, entry: Entry) -> float:
    """Scores 1 if the answer is the true integer."""
    return float(reading.integer(answer) == int(entry["answer"]))


def decimal(answer: str, entry: Entry) -> float:
    """Scores 1 if the answer is the true decimal number."""
    return float(reading.decimal(answer) == Decimal(entry["answer"]))


def exact(answer: str, entry: Entry) -> float:
    """Scores 1 if the answer equals the true one, including case; white space around it is ignored."""
    return float(answer.strip(reading.SPACE) == entry["answer"])


def word(answer: str, entry: Entry) -> float:
    """Scores 1 if the answer is the true word, in any case."""
    return float(answer.isascii() and answer.strip(reading.SPACE).lower() == str(entry["answer"]).lower())


def grid(answer: str, entry: Entry) -> float:
    """Scores 1 if the answer is the true grid of numbers: one line per row, numbers separated by spaces."""
    return float(reading.rows(answer) == entry["metadata"]["solution"])
