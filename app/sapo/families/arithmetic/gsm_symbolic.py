"""Word problems: everyday stories with numbers, from the library's templates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from app.sapo import library, reading
from app.sapo.families import contents, scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.families.wording import articled, sentences
from app.sapo.reading.expression import exactly

_UNIT = re.compile(r"/[a-z]+")
_TOKEN = re.compile(r"[0-9]+(?:\.[0-9]+)?|[-+*/÷=]|(?<![a-z])x(?![a-z])")
_EQUATION = re.compile(r"([0-9.]+(?: [-+*/] [0-9.]+)+) = ([0-9.]+)")


class _Stories:
    """The templates of a level as a data set: item i of seed s is drawn from s + i alone.

    The library's own data set draws the templates when it is made, so item 0 is the same story for every
    seed."""

    def __init__(self, templates: Sequence[int]) -> None:
        self.seed = 0
        self._templates = templates
        self._generators = library.gym().create_dataset("gsm_symbolic", seed=0, size=1).generators

    def __getitem__(self, index: int) -> Entry:
        rng = Random(self.seed + index)
        entry: dict[str, Any] = self._generators[rng.choice(self._templates)](rng, 1.0)
        entry["question"] += " Give the result as your final answer. Do not include units."
        return entry


def _opened(settings: Mapping[str, Any]) -> _Stories:
    return _Stories(settings["templates"])


def _equations(entry: Entry) -> list[tuple[str, str]]:
    """The steps of the library's own solution, without its words: each an expression and its value."""
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
"""What the library's stories lack, and what stands there instead."""


def _wording(entry: Entry) -> str:
    text = str(entry["question"])
    for lacking, said in _LACKING:
        text = re.sub(lacking, said, text)
    return sentences(articled(text))


def _sound(entry: Entry) -> bool:
    """Whether every step is exact and the last one gives the truth. Half of 17 tubes of paint are 8 to the
    library, and so for many fractions: it floors them. Nor can three eat 24 of 23 pieces."""
    steps, truth = _equations(entry), reading.integer(entry["answer"])
    pieces = _PIECES.search(entry["question"])
    if truth is None or truth < 0 or (pieces and truth > int(pieces[1])):
        return False
    exact = all(exactly(expression) == reading.decimal(value) for expression, value in steps)
    return exact and bool(steps) and reading.decimal(steps[-1][1]) == truth


def _work(entry: Entry) -> str:
    return " ".join(f"{expression} = {value}." for expression, value in _equations(entry))


def _content(entry: Entry) -> Content:
    """The numbers of the story and the result: people, things and templates do not matter."""
    return contents.calculation(entry["question"], entry["answer"])


FAMILY = Family(
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
    opened=_opened,
    content=_content,
    wording=_wording,
    score=scores.integer,
    sound=_sound,
    work=_work,
)
