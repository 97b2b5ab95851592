"""Scores that several families share. Each is 1 for the truth, in the forms that `app.sapo.reading` reads, else
0."""

from __future__ import annotations

from decimal import Decimal

from app.sapo import reading
from app.sapo.families.family import Entry


def integer(answer: str, entry: Entry) -> float:
    """1 for the whole number that is the truth."""
    return float(reading.integer(answer) == int(entry["answer"]))


def decimal(answer: str, entry: Entry) -> float:
    """1 for the decimal number that is the truth."""
    return float(reading.decimal(answer) == Decimal(entry["answer"]))


def exact(answer: str, entry: Entry) -> float:
    """1 for the truth, character by character: case counts, white space around does not."""
    return float(answer.strip(reading.SPACE) == entry["answer"])


def word(answer: str, entry: Entry) -> float:
    """1 for the word that is the truth, in any case."""
    return float(answer.isascii() and answer.strip(reading.SPACE).lower() == str(entry["answer"]).lower())


def grid(answer: str, entry: Entry) -> float:
    """1 for the grid of numbers: a line for each row, spaces between the numbers."""
    return float(reading.rows(answer) == entry["metadata"]["solution"])
