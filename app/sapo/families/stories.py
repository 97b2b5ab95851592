"""Word problems and geometry: legs, angles, and stories of everyday life."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from app.sapo import library, reading
from app.sapo.families import contents, scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.families.wording import counted, fix_articles, replaced, sentences
from app.sapo.reading.expression import evaluate_or_none

# How many legs some animals have together.

LEGS = {
    **dict.fromkeys(("snake", "sea slug", "jellyfish", "flatworm", "leech"), 0),
    **dict.fromkeys(("chicken", "bird", "human", "duck"), 2),
    **dict.fromkeys(("dog", "cat", "cow", "horse", "lion", "elephant", "giraffe", "tiger", "deer", "sheep"), 4),
    **dict.fromkeys(("insect", "ant", "butterfly", "beetle", "bee", "wasp", "grasshopper", "cricket"), 6),
    **dict.fromkeys(("cockroach", "praying mantis", "firefly"), 6),
    **dict.fromkeys(("spider", "scorpion"), 8),
    **dict.fromkeys(("crab", "lobster", "shrimp"), 10),
    "woodlouse": 14,
}
"""Legs of the library's animals, without the starfish, whose five arms the library counts as legs."""


_MANY = {
    **{same: same for same in ("deer", "sheep", "shrimp", "jellyfish")},
    **{"butterfly": "butterflies", "firefly": "fireflies", "woodlouse": "woodlice"},
    **{animal: f"{animal}es" for animal in ("cockroach", "leech", "praying mantis")},
}


def _legs_wording(entry: Entry) -> str:
    have = [
        counted(count, animal, _MANY.get(animal, "")) for animal, count in entry["metadata"]["animals"].items()
    ]
    return f"{str(entry['question']).partition(' if you have ')[0]} if you have {', '.join(have)}?"


def _legs_sound(entry: Entry) -> bool:
    """Whether every animal's number of legs is a known fact, and there are some to count."""
    animals: dict[str, int] = entry["metadata"]["animals"]
    total = sum(count * LEGS.get(animal, 0) for animal, count in animals.items())
    return animals.keys() <= LEGS.keys() and 0 < total == int(entry["answer"])


def _legs_work(entry: Entry) -> str:
    animals = entry["metadata"]["animals"]
    parts = [count * LEGS[animal] for animal, count in animals.items()]
    steps = [
        f"{animal}: {count} * {LEGS[animal]} = {part}."
        for (animal, count), part in zip(animals.items(), parts, strict=True)
    ]
    if len(parts) > 1:
        steps.append(f"{' + '.join(map(str, parts))} = {sum(parts)}.")
    return " ".join(steps)


def _legs_sort(entry: Entry) -> str:
    animals = entry["metadata"]["animals"]
    return f"{LEGS[next(iter(animals))]} legs each" if len(animals) == 1 else ""


def _as_if(legs: int) -> Callable[[Entry], str]:
    return lambda entry: str(legs * sum(entry["metadata"]["animals"].values()))


LEG_COUNTING = Family(
    name="leg_counting",
    title="Counting legs",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_animals=1, max_animals=1, min_instances=2, max_instances=12),
        dict(min_animals=2, max_animals=2, min_instances=1, max_instances=12),
        dict(min_animals=2, max_animals=4, min_instances=1, max_instances=12),
        dict(min_animals=3, max_animals=6, min_instances=1, max_instances=15),
        dict(min_animals=5, max_animals=10, min_instances=5, max_instances=30),
    ),
    content=lambda entry: tuple(sorted(entry["metadata"]["animals"].items())),
    wording=_legs_wording,
    sort=_legs_sort,
    shortcuts={"four legs each": _as_if(4), "six legs each": _as_if(6)},
    held_out_share=6,  # one animal, a dozen times at most
    score=scores.integer,
    sound=_legs_sound,
    work=_legs_work,
    thinned=({"4 legs each": 0.36, "6 legs each": 0.34},),
)


# The last interior angle of a polygon.


def _known(entry: Entry) -> list[int]:
    return [int(angle) for angle in entry["metadata"]["known_angles"]]


def _geometry_sound(entry: Entry) -> bool:
    """Whether the polygon is convex, as the question says: the library allows a last angle above 180
    degrees.
    """
    last = 180 * (len(_known(entry)) - 1) - sum(_known(entry))
    return 0 < last < 180 and entry["answer"] == str(last)


def _geometry_work(entry: Entry) -> str:
    angles = _known(entry)
    whole = 180 * (len(angles) - 1)
    triangles = f"180 * {len(angles) - 1} = {whole}. " if len(angles) > 2 else ""
    known = f"{' + '.join(map(str, angles))} = {sum(angles)}."
    return f"{triangles}{known} {whole} - {sum(angles)} = {whole - sum(angles)}."


SIMPLE_GEOMETRY = Family(
    name="simple_geometry",
    title="Missing angles",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_sides=3, max_sides=3, min_angle=10, max_angle=80),
        dict(min_sides=3, max_sides=4, min_angle=20, max_angle=120),
        dict(min_sides=4, max_sides=6, min_angle=40, max_angle=150),
        dict(min_sides=5, max_sides=10, min_angle=80, max_angle=175),
    ),
    content=lambda entry: tuple(sorted(_known(entry))),
    wording=replaced(("?Return", "? Return"), ("angle.Return", "angle. Return"), ("answer.Do", "answer. Do")),
    score=scores.integer,
    sound=_geometry_sound,
    work=_geometry_work,
)


# Word problems: everyday stories with numbers, from the library's templates.

_UNIT = re.compile(r"/[a-z]+")
_TOKEN = re.compile(r"[0-9]+(?:\.[0-9]+)?|[-+*/÷=]|(?<![a-z])x(?![a-z])")
_EQUATION = re.compile(r"([0-9.]+(?: [-+*/] [0-9.]+)+) = ([0-9.]+)")


class _Stories:
    """A level's templates as a data set in which item i of seed s is drawn from s + i alone. The library draws
    the templates when the data set is created, so item 0 is the same story for every seed."""

    def __init__(self, templates: Sequence[int]) -> None:
        self.seed = 0
        self._templates = templates
        self._generators = library.gym().create_dataset("gsm_symbolic", seed=0, size=1).generators

    def __getitem__(self, index: int) -> Entry:
        rng = Random(self.seed + index)
        entry: dict[str, Any] = self._generators[rng.choice(self._templates)](rng, 1.0)
        entry["question"] += " Give the result as your final answer. Do not include units."
        return entry


def _story_opened(settings: Mapping[str, Any]) -> _Stories:
    return _Stories(settings["templates"])


def _equations(entry: Entry) -> list[tuple[str, str]]:
    """Returns the steps of the library's own solution, without its words: each an expression and its value."""
    told = _UNIT.sub("", entry["metadata"]["answer_cot"].partition("####")[0])
    tokens = " ".join(_TOKEN.findall(told)).replace("x", "*").replace("÷", "/")
    return _EQUATION.findall(tokens)


_PIECES = re.compile(r" sliced an? .* into ([0-9]+) pieces")
_LACKING = (
    (r"\b([0-9]+) slice\b", r"\1 slices"),
    (r"\b1 slices\b", "1 slice"),
    (r"\b1 years\b", "1 year"),
    (r"\bon the (bowl|basket)\b", r"in the \1"),
    (r"\b(to|get to) (?=(?:school|bank|gym|library|mall|park|store|museum|station|beach)\b)", r"\1 the "),
    (r"\b(first|second|third|fourth|fifth|sixth) grade boys\b", r"\1-grade boys"),
    (r"\bccs\b", "cubic centimeters"),
    (r"\bper cc\b", "per cubic centimeter"),
)
"""Mistakes in the library's stories, and their replacements."""


def _story_wording(entry: Entry) -> str:
    text = str(entry["question"])
    for lacking, said in _LACKING:
        text = re.sub(lacking, said, text)
    return sentences(fix_articles(text))


def _story_sound(entry: Entry) -> bool:
    """Whether every step is exact and the last one gives the true answer. The library floors many fractions:
    half of 17 tubes of paint are 8. It also lets three people eat 24 of 23 pieces."""
    steps, truth = _equations(entry), reading.integer(entry["answer"])
    pieces = _PIECES.search(entry["question"])
    if truth is None or truth < 0 or (pieces and truth > int(pieces[1])):
        return False
    exact = all(evaluate_or_none(expression) == reading.decimal(value) for expression, value in steps)
    return exact and bool(steps) and reading.decimal(steps[-1][1]) == truth


def _story_work(entry: Entry) -> str:
    return " ".join(f"{expression} = {value}." for expression, value in _equations(entry))


def _story_content(entry: Entry) -> Content:
    """Returns the numbers of the story and the result; people, things and templates do not matter."""
    return contents.calculation(entry["question"], entry["answer"])


GSM_SYMBOLIC = Family(
    name="gsm_symbolic",
    title="Word problems",
    kind=FamilyKind.NUMBERS,
    # Of the library's 85 stories those that say all they need; few and small steps first.
    levels=(
        dict(templates=(4, 10, 16, 31, 43, 72)),
        dict(templates=(9, 20, 34, 39, 48, 54, 57, 58, 62, 78)),
        dict(templates=(24, 26, 30, 33, 44, 50, 56, 59, 67, 69)),
        dict(templates=(3, 18, 41, 64, 81)),
    ),
    opened=_story_opened,
    content=_story_content,
    wording=_story_wording,
    score=scores.integer,
    sound=_story_sound,
    work=_story_work,
)
