"""What a small Brainfuck program prints."""

from __future__ import annotations

from app.sapo.families import scores
from app.sapo.families.family import Family, Kind

FAMILY = Family(
    name="bf",
    title="Tiny programs",
    kind=Kind.LOGIC,
    levels=(
        dict(difficulty=1),
        dict(difficulty=2),
    ),
    score=scores.exact,
    paper=True,
)
