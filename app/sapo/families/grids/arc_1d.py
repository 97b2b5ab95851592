"""A rule read off three rows of colours, applied to a fourth."""

from __future__ import annotations

from app.sapo import reading
from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.families.grids.row_rules import rivals


def _score(answer: str, entry: Entry) -> float:
    """1 for the row, in the form of the question: one line, spaces between the digits."""
    return float(reading.rows(answer) == [entry["metadata"]["test_example"]["output"]])


def _sound(entry: Entry) -> bool:
    """Whether the rule changes the test row, the row is not one of the examples (else the answer can be copied:
    7 % of level 0), and no other plain rule fits the examples and gives the test row another output."""
    test, examples = entry["metadata"]["test_example"], entry["metadata"]["train_examples"]
    seen = [(example["input"], example["output"]) for example in examples]
    copied = test["input"] == test["output"] or any(test["input"] == before for before, _ in seen)
    return not copied and not rivals(seen, test["input"], test["output"])


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
