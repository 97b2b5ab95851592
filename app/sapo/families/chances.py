"""Chances of dice and coins."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb, prod

from app.sapo import reading
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.families.wording import replaced

# How likely some dice show at least a sum.

_SIDES = re.compile(r"1d([0-9]+)")


def _dice(entry: Entry) -> list[int]:
    """Returns the number of sides of each die, largest first."""
    return [int(sides) for sides in _SIDES.findall(entry["metadata"]["puzzle"]["dice_str"])]


def _dice_chance(entry: Entry) -> Fraction:
    sums = Counter({0: 1})
    for sides in _dice(entry):
        thrown: Counter[int] = Counter()
        for total, ways in sums.items():
            thrown.update({total + face: ways for face in range(1, sides + 1)})
        sums = thrown
    enough = sum(ways for total, ways in sums.items() if total >= entry["metadata"]["puzzle"]["target"])
    return Fraction(enough, prod(_dice(entry)))


def _dice_score(answer: str, entry: Entry) -> float:
    """Scores 1 for the reduced fraction that the question asks for."""
    return float(reading.fraction(answer) == reading.fraction(entry["answer"]))


def _dice_sound(entry: Entry) -> bool:
    chance = _dice_chance(entry)
    return reading.fraction(entry["answer"]) == (chance.numerator, chance.denominator)


def _dice_work(entry: Entry) -> str:
    """Returns the work: how many sides of the largest die suffice, for each throw of the other dice."""
    largest, *others = _dice(entry)
    target = entry["metadata"]["puzzle"]["target"]
    thrown = product(*(range(1, sides + 1) for sides in others))
    enough = (min(largest + 1 + sum(faces) - target, largest) for faces in thrown)
    ways = [sides for sides in enough if sides > 0]
    total = prod([largest, *others])
    chance = f"{sum(ways)}/{total} = {entry['answer']}."
    throws = f"{' * '.join(map(str, [largest, *others]))} = {total}."
    return f"{' + '.join(map(str, ways))} = {sum(ways)}. {throws} {chance}"


DICE = Family(
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
    score=_dice_score,
    sound=_dice_sound,
    work=_dice_work,
)


# The chance of some heads in some tosses of a coin.


def _coin_score(answer: str, entry: Entry) -> float:
    """Scores 1 for exactly the probability: as a fraction, reduced or not, as a decimal or in percent. The
    library would pay for numbers that are near, or that begin alike."""
    read = reading.fraction(answer)
    if read is not None:
        return float(read[1] > 0 and Fraction(*read) == _coin_chance(entry))
    percent = answer.rstrip(reading.SPACE).endswith("%")
    number = reading.decimal(answer.rstrip(reading.SPACE).removesuffix("%"))
    return float(number is not None and Fraction(number) == _coin_chance(entry) * (100 if percent else 1))


def _counted(entry: Entry) -> tuple[int, int]:
    """Returns the number of equally likely sequences of tosses, and of those with the heads asked for."""
    metadata = entry["metadata"]
    tosses, heads = metadata["num_trials"], metadata["k_heads"]
    most = heads if metadata["problem_type"] == "exact" else tosses
    return sum(comb(tosses, k) for k in range(heads, most + 1)), 2**tosses


def _coin_chance(entry: Entry) -> Fraction:
    return Fraction(*_counted(entry))


def _coin_sound(entry: Entry) -> bool:
    """Whether the outcome is uncertain, and the library's answer, which it rounds, is exact."""
    return _coin_chance(entry) == Fraction(entry["answer"]) != 1


def _coin_solution(entry: Entry) -> str:
    return str(_coin_chance(entry))


def _coin_work(entry: Entry) -> str:
    fitting, rows = _counted(entry)
    twos = " * ".join(["2"] * entry["metadata"]["num_trials"])
    reduced = f" {fitting}/{rows} = {_coin_chance(entry)}." if _coin_chance(entry).denominator < rows else ""
    return f"{twos} = {rows} ways, {fitting} fit.{reduced}"


COIN_FLIP = Family(
    name="coin_flip",
    title="Coin tosses",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_trials=2, max_trials=8),
        dict(min_trials=4, max_trials=10),
        dict(min_trials=7, max_trials=10),
    ),
    content=lambda entry: (
        entry["metadata"]["num_trials"],
        entry["metadata"]["k_heads"],
        str(_coin_chance(entry)),
    ),
    wording=replaced((" 1 heads ", " 1 head ")),
    score=_coin_score,
    sound=_coin_sound,
    solution=_coin_solution,
    work=_coin_work,
    held_out_share=3,  # ten tosses, the most whose chance the library gives exactly, make 105 questions
)
