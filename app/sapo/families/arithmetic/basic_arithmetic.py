"""Expressions of + - * / and parentheses."""

from __future__ import annotations

from app.sapo.families import contents, scores
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.reading.expression import exactly


def _sound(entry: Entry) -> bool:
    """Whether exact arithmetic gives the truth. False in 1 % of level 4, where `/` was computed as floor
    division."""
    return exactly(entry["metadata"]["expression"]) == int(entry["answer"])


def _work(entry: Entry) -> str:
    expression = " ".join(entry["metadata"]["expression"].split())
    if expression.startswith("( ") and expression.index(")") == len(expression) - 1:
        expression = expression[2:-2]
    return f"{expression} = {entry['answer']}."


FAMILY = Family(
    name="basic_arithmetic",
    title="Arithmetic",
    kind=FamilyKind.NUMBERS,
    # Only the form with parentheses: without them the library computes strictly from left to right and so
    # gives 2 + 3 * 4 the truth 20.
    levels=(
        dict(min_terms=2, max_terms=2, min_digits=1, max_digits=1, operators=("+", "-", "*")),
        dict(min_terms=2, max_terms=3, min_digits=1, max_digits=1, operators=("+", "-", "*")),
        dict(min_terms=3, max_terms=4, min_digits=1, max_digits=1, operators=("+", "-", "*")),
        dict(min_terms=2, max_terms=5, min_digits=1, max_digits=2),
        dict(min_terms=2, max_terms=6, min_digits=1, max_digits=4),
    ),
    content=lambda entry: contents.calculation(entry["metadata"]["expression"], entry["answer"]),
    score=scores.integer,
    sound=_sound,
    work=_work,
    paper=True,
)
