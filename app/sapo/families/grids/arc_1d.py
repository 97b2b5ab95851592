"""A rule read off three rows of colours, applied to a fourth."""

from __future__ import annotations

from app.sapo import reading
from app.sapo.families.family import Content, Entry, Family, FamilyKind


def _score(answer: str, entry: Entry) -> float:
    """1 for the row, in the form of the question: one line, spaces between the digits."""
    return float(reading.rows(answer) == [entry["metadata"]["test_example"]["output"]])


def _sound(entry: Entry) -> bool:
    """Whether the rule changes the test row, and the row is not one of the examples: else the answer can be
    copied (7 % of level 0)."""
    test = entry["metadata"]["test_example"]
    examples = entry["metadata"]["train_examples"]
    return test["input"] != test["output"] and all(test["input"] != example["input"] for example in examples)


def _content(entry: Entry) -> Content:
    """The row and what becomes of it, whatever examples tell the rule."""
    test = entry["metadata"]["test_example"]
    return tuple(test["input"]), tuple(test["output"])


FAMILY = Family(
    name="arc_1d",
    title="Rows of colours",
    kind=FamilyKind.GRIDS,
    levels=(
        dict(min_size=8, max_size=10),
        dict(min_size=8, max_size=16),
        dict(min_size=10, max_size=30),
    ),
    content=_content,
    score=_score,
    sound=_sound,
    paper=True,
)
