"""Word problems: every story is worked out again from the numbers of its text, by a formula of ours."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from app.sapo import library
from app.sapo.families import FAMILIES
from app.sapo.questions import Coordinates, UnsoundQuestion, generate

FAMILY = FAMILIES["gsm_symbolic"]
TEMPLATES = [template for level in FAMILY.levels for template in level["templates"]]

FORMULAS: dict[int, Callable[..., Any]] = {
    3: lambda pals, fewer, letters, pages, minutes: Fraction((pals - fewer) * letters * pages * minutes, 60),
    4: lambda jars, each, rack: Fraction(jars * each, rack),
    9: lambda bills, worth, one, price, other, cost: bills * worth - one * price - other * cost,
    10: lambda age, years, times: times * age - years,
    16: lambda times, others, friends: Fraction(friends, times) * others,
    18: lambda points, more, percent: points + more + Fraction(percent * points, 100),
    20: lambda hold, have, trays: have - hold * trays,
    24: lambda orbit, age, times: age * times - orbit,
    26: lambda balls, percent, of_those: Fraction(balls * percent * of_those, 10_000),
    30: lambda students, one, other: students - one - other - 2 * other,
    31: lambda pieces, own, second, third: own + (own + second) + (own + second + third),
    33: lambda times, daily: (daily + times * daily) * 7,
    34: lambda hidden, each, left: hidden - 2 * each - left,
    39: lambda students, girls, girls_away, boys_away: students - girls - boys_away,
    41: lambda share, of, have, cost: cost - Fraction(cost * share, of) - have,
    43: lambda have, fewer: have + have - fewer,
    44: lambda a, b, c, x, y, z: a * x + b * y + c * z,
    48: lambda price, other, loaves, others: price * loaves - other * others,
    50: lambda half, whole: Fraction(half, 2) + whole,
    54: lambda minutes, one, other: minutes - one - other,
    56: lambda made, one, other: made - one - other,
    57: lambda one, boys, girls: one + 2 * one + boys + girls,
    58: lambda size, bottles, calories: size * bottles * calories,
    59: lambda minutes, miles, across: Fraction(across, miles) * minutes,
    62: lambda portions, one, times: Fraction(portions, one + one * times),
    64: lambda one, days, other, more, all_days: Fraction(one * days + other * more, 12),
    67: lambda one, other, times: one + other + times * one,
    69: lambda pages, share, of: pages - Fraction(pages * share, of),
    72: lambda one, times, total: total - one - one * times,
    78: lambda apart, age: Fraction(age + age + apart, 2),
    81: lambda weeks, days, pay: weeks * days * pay * 12,
}


def numbers(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\d+(?:,\d{3})*", text)]


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_story_means_what_the_library_says(template: int) -> None:
    story = library.gym().create_dataset("gsm_symbolic", seed=0, size=1).generators[template]
    sound = 0
    for seed in range(200):
        item = story(Random(seed), 1.0)
        if FAMILY.sound(item):
            sound += 1
            assert FORMULAS[template](*numbers(item["question"])) == int(item["answer"]), item["question"]
    assert sound > 60


def test_each_story_stands_at_one_level() -> None:
    assert sorted(TEMPLATES) == sorted(FORMULAS)


def test_seeds_alone_draw_different_stories() -> None:
    texts = []
    for seed in range(10**6, 10**6 + 40):
        with contextlib.suppress(UnsoundQuestion):
            texts.append(generate(Coordinates(family="gsm_symbolic", level=0, seed=seed, index=0)).text)
    for words in ("jars", "right now", "friends", "sliced", "fewer", "unknown number"):
        assert any(words in text for text in texts), words
