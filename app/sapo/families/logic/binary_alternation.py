"""How many swaps make the bits of a row take turns."""

from __future__ import annotations

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, FamilyKind


def _misplaced(bits: str) -> dict[str, int]:
    """For each row in turns that has the same bits: in how many places it differs."""
    rows = ["".join(pair[place % 2] for place in range(len(bits))) for pair in ("01", "10")]
    return {
        row: sum(one != other for one, other in zip(bits, row, strict=True))
        for row in rows
        if row.count("1") == bits.count("1")
    }


def _sound(entry: Entry) -> bool:
    """Whether the truth is half of the misplaced bits, or -1 where no row in turns has these bits."""
    return int(entry["answer"]) == min(_misplaced(entry["metadata"]["string"]).values(), default=-2) // 2


def _work(entry: Entry) -> str:
    bits = entry["metadata"]["string"]
    rows = _misplaced(bits)
    if not rows:
        return f"{bits.count('0')} zeros, {bits.count('1')} ones: impossible."
    row = min(rows, key=lambda row: rows[row])
    return f"{bits} to {row}: {rows[row]} differ, {rows[row]} / 2 = {rows[row] // 2}."


FAMILY = Family(
    name="binary_alternation",
    title="Bits in turn",
    kind=FamilyKind.LOGIC,
    levels=(
        dict(min_n=7, max_n=13),
        dict(min_n=10, max_n=15),
        dict(min_n=15, max_n=22),
        dict(min_n=23, max_n=34),
    ),
    content=lambda entry: entry["metadata"]["string"],
    score=scores.integer,
    sound=_sound,
    work=_work,
    thinned=(
        {"-1": 0.26, "1": 0.38, "2": 0.14, "3": 0.27},
        {"-1": 0.4, "2": 0.25, "3": 0.28, "4": 0.66},
        {"-1": 0.4, "3": 0.52, "4": 0.28, "5": 0.4},
        {"-1": 0.81, "6": 0.6, "7": 0.8},
    ),
)
