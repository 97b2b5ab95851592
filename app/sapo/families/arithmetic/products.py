"""Products of whole numbers."""

from __future__ import annotations

from math import prod

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, FamilyKind


def _factors(entry: Entry) -> list[int]:
    return [int(factor) for factor in entry["metadata"]["expression"].split(" * ")]


def _sound(entry: Entry) -> bool:
    """Whether there is something to multiply: times 0 or 1 the answer is one of the factors."""
    factors = _factors(entry)
    return min(factors) > 1 and prod(factors) == int(entry["answer"])


def _work(entry: Entry) -> str:
    """Factor by factor; times a long one, digit by digit."""
    total, *rest = _factors(entry)
    steps = []
    for factor in rest:
        places = [int(digit) * 10**place for place, digit in enumerate(reversed(str(factor))) if digit != "0"]
        parts = [total * place for place in reversed(places)]
        steps += [f"{total} * {place} = {part}." for place, part in zip(reversed(places), parts, strict=True)]
        total *= factor
        if len(parts) > 1:
            steps.append(f"{' + '.join(map(str, parts))} = {total}.")
    return " ".join(steps)


FAMILY = Family(
    name="products",
    title="Products",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_terms=2, max_terms=2, min_digits=1, max_digits=1),
        dict(min_terms=2, max_terms=3, min_digits=1, max_digits=1),
        dict(min_terms=2, max_terms=3, min_digits=1, max_digits=2),
        dict(min_terms=2, max_terms=3, min_digits=2, max_digits=3),
        dict(min_terms=3, max_terms=4, min_digits=2, max_digits=4),
    ),
    content=lambda entry: tuple(sorted(_factors(entry))),
    score=scores.integer,
    sound=_sound,
    work=_work,
    held_out_share=3,  # the times table has 36 products, three numbers of one digit make 120
)
