"""Products of whole numbers."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from random import Random
from typing import Any

from app.sapo import library
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


class _Pairs:
    """Two factors in any order: one in least..most, the other in least..by. In the library's words and form."""

    def __init__(self, least: int, most: int, by: int) -> None:
        self.seed = 0
        self._bounds = ((least, most), (least, by))

    def __getitem__(self, index: int) -> Entry:
        rng = Random(self.seed + index)
        factors = [rng.randint(*bounds) for bounds in self._bounds]
        rng.shuffle(factors)
        expression = " * ".join(map(str, factors))
        return {
            "question": (
                f"Solve the following multiplication: {expression}. Give only the result as your final answer."
            ),
            "answer": str(prod(factors)),
            "metadata": {"expression": expression},
        }


def _opened(settings: Mapping[str, Any]) -> Any:
    if "by" in settings:
        return _Pairs(**settings)
    return library.gym().create_dataset("products", seed=0, size=2**20, **settings)


FAMILY = Family(
    name="products",
    title="Products",
    kind=FamilyKind.NUMBERS,
    levels=(
        # The library's own first level has 36 products.
        dict(least=2, most=9, by=30),
        dict(min_terms=2, max_terms=3, min_digits=1, max_digits=1),
        dict(min_terms=2, max_terms=3, min_digits=1, max_digits=2),
        dict(min_terms=2, max_terms=3, min_digits=2, max_digits=3),
        dict(min_terms=3, max_terms=4, min_digits=2, max_digits=4),
    ),
    opened=_opened,
    content=lambda entry: tuple(sorted(_factors(entry))),
    score=scores.integer,
    sound=_sound,
    work=_work,
    held_out_share=4,  # three numbers of one digit make 120 products
)
