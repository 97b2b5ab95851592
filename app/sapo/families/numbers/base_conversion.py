"""Numbers written in another base."""

from __future__ import annotations

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, FamilyKind


def _work(entry: Entry) -> str:
    return f"{entry['metadata']['source_repr']} is {entry['metadata']['decimal_value']}."


FAMILY = Family(
    name="base_conversion",
    title="Number bases",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_base=2, max_base=4, min_value=4, max_value=40),
        dict(min_base=2, max_base=8, min_value=8, max_value=120),
        dict(min_base=2, max_base=10, min_value=20, max_value=400),
        dict(min_base=2, max_base=16, min_value=50, max_value=1000),
        dict(min_base=2, max_base=20, min_value=100, max_value=10000),
    ),
    content=lambda entry: (
        entry["metadata"]["decimal_value"],
        entry["metadata"]["source_base"],
        entry["metadata"]["target_base"],
    ),
    score=scores.word,
    work=_work,
    paper=True,
)
