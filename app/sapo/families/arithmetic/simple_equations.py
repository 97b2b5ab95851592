"""Linear equations in one variable."""

from __future__ import annotations

import re
from fractions import Fraction

from app.sapo import reading
from app.sapo.families import contents, scores
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.reading.expression import evaluate


def _score(answer: str, entry: Entry) -> float:
    """1 for the solution, alone or as `x = 4` with the question's own variable."""
    name, equals, value = answer.partition("=")
    if equals and name.strip(reading.SPACE) == entry["metadata"]["variable"]:
        answer = value
    return scores.integer(answer, entry)


def _sound(entry: Entry) -> bool:
    """Whether the truth is the only solution. `0 = 0`, from a factor like 5 - 5, has every number as
    solution."""
    left, _, right = entry["metadata"]["equation"].partition("=")
    variable = entry["metadata"]["variable"]
    truth = int(entry["answer"])

    def difference(value: int) -> Fraction:
        values = {variable: Fraction(value)}
        return evaluate(left, values) - evaluate(right, values)

    return difference(truth) == 0 and difference(truth + 1) != 0


def _work(entry: Entry) -> str:
    variable = entry["metadata"]["variable"]
    left, right = entry["metadata"]["equation"].replace(" ", "").split("=")
    value, factor = int(right), 0
    for term in re.findall(r"[-+]?[^-+]+", left):
        if variable in term:
            digits = re.sub(r"[^-0-9]", "", term)
            factor += int(f"{digits}1") if digits in ("", "-") else int(digits)
        else:
            value -= int(term)
    moved = int(right) - value
    steps = [f"{right} {'-' if moved > 0 else '+'} {abs(moved)} = {value}."] if moved else []
    return " ".join([*steps, f"{value} / {factor} = {entry['answer']}."])


FAMILY = Family(
    name="simple_equations",
    title="Equations",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_terms=2, max_terms=2, min_value=1, max_value=9, operators_weights=[0.5, 0.5, 0.0]),
        dict(min_terms=2, max_terms=3, min_value=1, max_value=20, operators_weights=[0.5, 0.5, 0.0]),
        dict(min_terms=2, max_terms=3, min_value=1, max_value=50),
        dict(min_terms=2, max_terms=4, min_value=1, max_value=100),
        dict(min_terms=3, max_terms=6, min_value=1, max_value=200),
    ),
    content=lambda entry: contents.calculation(entry["metadata"]["equation"], entry["answer"]),
    score=_score,
    sound=_sound,
    work=_work,
)
