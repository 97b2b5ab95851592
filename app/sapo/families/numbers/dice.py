"""How likely some dice show at least a sum."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from itertools import product
from math import prod

from app.sapo import reading
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.families.wording import replaced

_SIDES = re.compile(r"1d([0-9]+)")


def _dice(entry: Entry) -> list[int]:
    """Sides of each, the largest first."""
    return [int(sides) for sides in _SIDES.findall(entry["metadata"]["puzzle"]["dice_str"])]


def _chance(entry: Entry) -> Fraction:
    sums = Counter({0: 1})
    for sides in _dice(entry):
        thrown: Counter[int] = Counter()
        for total, ways in sums.items():
            thrown.update({total + face: ways for face in range(1, sides + 1)})
        sums = thrown
    enough = sum(ways for total, ways in sums.items() if total >= entry["metadata"]["puzzle"]["target"])
    return Fraction(enough, prod(_dice(entry)))


def _score(answer: str, entry: Entry) -> float:
    """1 for the reduced fraction that the question asks for."""
    return float(reading.fraction(answer) == reading.fraction(entry["answer"]))


def _sound(entry: Entry) -> bool:
    chance = _chance(entry)
    return reading.fraction(entry["answer"]) == (chance.numerator, chance.denominator)


def _work(entry: Entry) -> str:
    """How many sides of the largest die are enough, for each throw of the others."""
    largest, *others = _dice(entry)
    target = entry["metadata"]["puzzle"]["target"]
    thrown = product(*(range(1, sides + 1) for sides in others))
    enough = (min(largest + 1 + sum(faces) - target, largest) for faces in thrown)
    ways = [sides for sides in enough if sides > 0]
    total = prod([largest, *others])
    chance = f"{sum(ways)}/{total} = {entry['answer']}."
    throws = f"{' * '.join(map(str, [largest, *others]))} = {total}."
    return f"{' + '.join(map(str, ways))} = {sum(ways)}. {throws} {chance}"


FAMILY = Family(
    name="dice",
    title="Dice",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(num_dice=2, max_dice_size=24),
        dict(num_dice=2, max_dice_size=36),
        dict(num_dice=3, max_dice_size=36),
        dict(num_dice=4, max_dice_size=36),
    ),
    content=lambda entry: (*sorted(_dice(entry)), "at least", entry["metadata"]["puzzle"]["target"]),
    wording=replaced(
        ("What are the odds of", "What is the probability of"),
        ("6-sided dice", "6-sided die"),
        ("[ex., 1/60]", "(e.g., 1/60)"),
    ),
    score=_score,
    sound=_sound,
    work=_work,
)
