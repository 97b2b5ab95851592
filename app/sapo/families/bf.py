"""What a small Brainfuck program prints."""

from __future__ import annotations

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, Kind


def _source(entry: Entry) -> str:
    """What the program was compiled from: the same word is printed by several programs."""
    return str(entry["metadata"]["bfit_code"])


FAMILY = Family(
    name="bf",
    title="Tiny programs",
    kind=Kind.LOGIC,
    levels=(
        dict(difficulty=1),
        dict(difficulty=2),
    ),
    score=scores.exact,
    recalled=_source,
    paper=True,
)
