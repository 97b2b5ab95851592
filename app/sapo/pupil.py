"""Worked examples: what a careful pupil writes to a question before the answer, restating it on the way.

A model that was never asked such questions is shown some of these before it answers (`app.sapo.asking`). Each
function takes a reasoning-gym entry and gives the working; the answer that follows is the entry's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from app.sapo.asking import SHORT
from app.sapo.questions import Question

Entry = Mapping[str, Any]


def _chain_sum(entry: Entry) -> str:
    first, *rest = entry["metadata"]["expression"].split()
    total, steps = int(first), []
    for operator, term in zip(rest[::2], rest[1::2], strict=True):
        after = total + int(term) if operator == "+" else total - int(term)
        steps.append(f"{total} {operator} {term} = {after}.")
        total = after
    return " ".join(steps)


def _basic_arithmetic(entry: Entry) -> str:
    expression = " ".join(entry["metadata"]["expression"].split())
    if expression.startswith("( ") and expression.index(")") == len(expression) - 1:
        expression = expression[2:-2]
    return f"{expression} = {entry['answer']}."


def _gcd(entry: Entry) -> str:
    numbers, divisor = entry["metadata"]["numbers"], int(entry["answer"])
    return " ".join(f"{number} = {divisor} * {number // divisor}." for number in numbers)


def _lcm(entry: Entry) -> str:
    """Multiples of the largest until the others divide one."""
    *others, largest = sorted(entry["metadata"]["numbers"])
    multiples = [largest]
    while any(multiples[-1] % other for other in others) and len(multiples) < 12:
        multiples.append(multiples[-1] + largest)
    result = int(entry["answer"])
    checks = " ".join(f"{result} = {result // other} * {other}." for other in others)
    return f"{', '.join(map(str, multiples))}. {checks}"


def _simple_equations(entry: Entry) -> str:
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


def _fraction_simplification(entry: Entry) -> str:
    meta = entry["metadata"]
    factor = meta["reduction_factor"]
    parts = (("numerator", "simplified_numerator"), ("denominator", "simplified_denominator"))
    return " ".join(f"{meta[whole]} / {factor} = {meta[part]}." for whole, part in parts)


def _count_bits(entry: Entry) -> str:
    return f"{entry['metadata']['number']} is {' '.join(entry['metadata']['binary'])}."


def _letter_counting(entry: Entry) -> str:
    letter = entry["metadata"]["target_letter"].lower()
    return ", ".join(f"{word} {word.lower().count(letter)}" for word in entry["metadata"]["span"]) + "."


def _spell_backward(entry: Entry) -> str:
    return " ".join(reversed(entry["metadata"]["word"])) + "."


def _base_conversion(entry: Entry) -> str:
    return f"{entry['metadata']['source_repr']} is {entry['metadata']['decimal_value']}."


WORKING: Mapping[str, Callable[[Entry], str]] = {
    "chain_sum": _chain_sum,
    "basic_arithmetic": _basic_arithmetic,
    "gcd": _gcd,
    "lcm": _lcm,
    "simple_equations": _simple_equations,
    "fraction_simplification": _fraction_simplification,
    "count_bits": _count_bits,
    "letter_counting": _letter_counting,
    "spell_backward": _spell_backward,
    "base_conversion": _base_conversion,
}
"""By family."""


MOST = 400
"""Characters; a longer example would crowd out the others."""


def worked(question: Question) -> str:
    """The work, the short mark and the answer; empty where the family has no working that a small model could
    copy, or where it is too long."""
    work = WORKING.get(question.coordinates.family)
    text = f"{work(question.entry)} {SHORT}{question.entry['answer']}" if work else ""
    return text if len(text) <= MOST else ""
