"""A line of work for every family of the starter: what a careful solver writes before `#answer`.

Each function takes a reasoning-gym entry and a `Pen`, writes its steps and returns the answer that follows from
them. The pen sometimes slips, and the steps after a slip follow from the wrong value, as a person's would.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

MAX_STEPS = 12


class Stuck(Exception):
    """The work leads nowhere (after a slip, say); the example is drawn again."""


class Pen:
    """Writes steps. With probability `slip` a step's integer comes out wrong by one or by ten."""

    def __init__(self, rng: Random, slip: float) -> None:
        self._rng = rng
        self._slip = slip
        self.words: list[str] = []

    def step(self, before: str, value: int, after: str = "") -> int:
        """Writes `before`, the value and `after` as one word, and returns the value as written."""
        if len(self.words) >= MAX_STEPS:
            raise Stuck
        if self._rng.random() < self._slip:
            value += self._rng.choice((-10, -1, 1, 10))
        self.words.append(f"{before}{value}{after}")
        return value

    def note(self, word: str) -> None:
        self.words.append(word)


def _chain_sum(entry: Mapping[str, Any], pen: Pen) -> str:
    first, *rest = entry["metadata"]["expression"].split()
    total = int(first)
    for operator, term in zip(rest[::2], rest[1::2], strict=True):
        exact = total + int(term) if operator == "+" else total - int(term)
        total = pen.step(f"{total}{operator}{term}=", exact)
    return str(total)


def _basic_arithmetic(entry: Mapping[str, Any], pen: Pen) -> str:
    tokens = re.findall(r"\d+|[-+*()]", entry["metadata"]["expression"].replace(" ", ""))

    def atom() -> int:
        token = tokens.pop(0)
        if token == "-":
            if tokens[0] == "(":
                value = atom()
                return pen.step(f"-({value})=", -value)
            return -atom()
        if token == "(":
            value = total()
            tokens.pop(0)
            return value
        return int(token)

    def product() -> int:
        value = atom()
        while tokens and tokens[0] == "*":
            tokens.pop(0)
            factor = atom()
            value = pen.step(f"{value}*{factor}=", value * factor)
        return value

    def total() -> int:
        value = product()
        while tokens and tokens[0] in "+-":
            operator = tokens.pop(0)
            term = product()
            exact = value + term if operator == "+" else value - term
            value = pen.step(f"{value}{operator}{term}=", exact)
        return value

    return str(total())


def _euclid(a: int, b: int, pen: Pen) -> int:
    """Remainders one after the other down to 0; the number before it is the divisor."""
    a, b = max(a, b), min(a, b)
    pen.note(str(a))
    pen.note(str(b))
    while b > 0:
        a, b = b, pen.step("", a % b)
    if b < 0 or a == 0:
        raise Stuck
    return a


def _gcd(entry: Mapping[str, Any], pen: Pen) -> str:
    first, *rest = entry["metadata"]["numbers"]
    for number in rest:
        first = _euclid(first, number, pen)
    return str(first)


def _lcm(entry: Mapping[str, Any], pen: Pen) -> str:
    first, *rest = entry["metadata"]["numbers"]
    for number in rest:
        large, small = max(first, number), min(first, number)
        divisor = _euclid(large, small, pen)
        part = pen.step(f"{small}/{divisor}=", small // divisor)
        first = pen.step(f"{large}*{part}=", large * part)
    return str(first)


def _fraction(entry: Mapping[str, Any], pen: Pen) -> str:
    top, bottom = entry["metadata"]["numerator"], entry["metadata"]["denominator"]
    divisor = _euclid(bottom, top, pen)
    top = pen.step(f"{top}/{divisor}=", top // divisor)
    bottom = pen.step(f"{bottom}/{divisor}=", bottom // divisor)
    return f"{top}/{bottom}"


def _simple_equations(entry: Mapping[str, Any], pen: Pen) -> str:
    left, right = entry["metadata"]["equation"].replace(" ", "").split("=")
    value = int(right)
    factor, constant = 0, 0
    for term in re.findall(r"[-+]?[^-+]+", left):
        if entry["metadata"]["variable"] in term:
            digits = re.sub(r"[^-0-9]", "", term)
            factor += int(digits + "1") if digits in ("", "-") else int(digits)
        else:
            constant += int(term)
    if factor == 0:
        raise Stuck
    if constant > 0:
        value = pen.step(f"{value}-{constant}=", value - constant)
    elif constant < 0:
        value = pen.step(f"{value}+{-constant}=", value - constant)
    return str(pen.step(f"{value}/{factor}=", round(value / factor)))


def _base_conversion(entry: Mapping[str, Any], pen: Pen) -> str:
    """To the decimal number digit by digit (Horner), then quotient `r` remainder down to 0."""
    meta = entry["metadata"]
    value = 0
    for digit in meta["source_repr"]:
        value = pen.step("", value * meta["source_base"] + int(digit, 36))
    answer = ""
    while value > 0:
        value, remainder = divmod(value, meta["target_base"])
        answer = _DIGITS[remainder] + answer
        value = pen.step("", value, f"r{_DIGITS[remainder]}")
    if not answer or value < 0:
        raise Stuck
    return answer


def _spell_backward(entry: Mapping[str, Any], pen: Pen) -> str:
    """Letters numbered from the front, then read from the back."""
    word = entry["metadata"]["word"]
    pen.note("".join(f"{letter}{place}" for place, letter in enumerate(word, start=1)))
    return str(word[::-1])


def _count_bits(entry: Mapping[str, Any], pen: Pen) -> str:
    """Halves and their remainders; then the remainders counted."""
    value, ones = entry["metadata"]["number"], 0
    while value > 0:
        bit = value % 2
        ones += bit
        pen.note(f"{value}:{bit}")
        value //= 2
    return str(ones)


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

WORK: Mapping[str, Callable[[Mapping[str, Any], Pen], str]] = {
    "chain_sum": _chain_sum,
    "basic_arithmetic": _basic_arithmetic,
    "gcd": _gcd,
    "lcm": _lcm,
    "fraction_simplification": _fraction,
    "simple_equations": _simple_equations,
    "base_conversion": _base_conversion,
    "spell_backward": _spell_backward,
    "count_bits": _count_bits,
}
"""The starter's families and how each is worked out."""


def worked(family: str, entry: Mapping[str, Any], rng: Random, slip: float) -> str:
    """A line of work with its answer: `4-1=3 3-7=-4 #-4`. Raises Stuck when the work leads nowhere."""
    pen = Pen(rng, slip)
    answer = WORK[family](entry, pen)
    return " ".join([*pen.words, f"#{answer}"])
