"""Sums and differences, worked from left to right."""

from __future__ import annotations

from app.sapo.families import contents, scores
from app.sapo.families.family import Entry, Family, FamilyKind


def _work(entry: Entry) -> str:
    first, *rest = entry["metadata"]["expression"].split()
    total, steps = int(first), []
    for operator, term in zip(rest[::2], rest[1::2], strict=True):
        after = total + int(term) if operator == "+" else total - int(term)
        steps.append(f"{total} {operator} {term} = {after}.")
        total = after
    return " ".join(steps)


FAMILY = Family(
    name="chain_sum",
    title="Sums",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_terms=2, max_terms=3, min_digits=1, max_digits=1),
        dict(min_terms=3, max_terms=5, min_digits=1, max_digits=1),
        dict(min_terms=3, max_terms=5, min_digits=1, max_digits=2),
        dict(min_terms=3, max_terms=6, min_digits=2, max_digits=3),
        dict(min_terms=4, max_terms=8, min_digits=2, max_digits=4),
    ),
    content=lambda entry: contents.calculation(entry["metadata"]["expression"], entry["answer"]),
    score=scores.integer,
    work=_work,
)
