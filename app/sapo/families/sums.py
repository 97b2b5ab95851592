"""Sums, products and other calculations of whole and decimal numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from math import prod
from random import Random
from typing import Any

from app.sapo import reading
from app.sapo.families import contents, scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.families.wording import replaced
from app.sapo.reading.expression import evaluate_or_none

# Sums and differences of whole or decimal numbers, worked from left to right.


def _chain_work(entry: Entry) -> str:
    first, *rest = entry["metadata"]["expression"].split()
    total, steps = Decimal(first), []
    for operator, term in zip(rest[::2], rest[1::2], strict=True):
        after = total + Decimal(term) if operator == "+" else total - Decimal(term)
        steps.append(f"{total} {operator} {term} = {after}.")
        total = after
    return " ".join(steps)


def _expression_content(entry: Entry) -> Content:
    return contents.calculation(entry["metadata"]["expression"], entry["answer"])


def _exact(entry: Entry) -> bool:
    """Whether exact arithmetic gives the library's answer. It does not in 1 % of level 4 of basic_arithmetic,
    where `/` was computed as floor division."""
    value = evaluate_or_none(entry["metadata"]["expression"])
    return value is not None and value == Decimal(entry["answer"])


CHAIN_SUM = Family(
    name="chain_sum",
    title="Sums",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_terms=2, max_terms=3, min_digits=1, max_digits=1),
        dict(min_terms=3, max_terms=5, min_digits=1, max_digits=1),
        dict(min_terms=3, max_terms=5, min_digits=1, max_digits=2),
        dict(min_terms=3, max_terms=6, min_digits=2, max_digits=3),
        dict(min_terms=4, max_terms=8, min_digits=2, max_digits=4),
    ),
    content=_expression_content,
    score=scores.integer,
    work=_chain_work,
)

DECIMAL_CHAIN_SUM = Family(
    name="decimal_chain_sum",
    title="Sums of decimals",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_terms=2, max_terms=2, min_digits=1, max_digits=1, min_decimal_places=1, max_decimal_places=1),
        dict(min_terms=2, max_terms=3, min_digits=1, max_digits=1, min_decimal_places=1, max_decimal_places=1),
        dict(min_terms=2, max_terms=4, min_digits=1, max_digits=2, min_decimal_places=1, max_decimal_places=2),
        dict(min_terms=3, max_terms=5, min_digits=1, max_digits=3, min_decimal_places=1, max_decimal_places=3),
        dict(min_terms=4, max_terms=6, min_digits=1, max_digits=4, min_decimal_places=1, max_decimal_places=4),
    ),
    content=_expression_content,
    score=scores.decimal,
    sound=_exact,
    work=_chain_work,
)


# Expressions of + - * / and parentheses.


def _basic_work(entry: Entry) -> str:
    expression = " ".join(entry["metadata"]["expression"].split())
    if expression.startswith("( ") and expression.index(")") == len(expression) - 1:
        expression = expression[2:-2]
    return f"{expression} = {entry['answer']}."


BASIC_ARITHMETIC = Family(
    name="basic_arithmetic",
    title="Arithmetic",
    kind=FamilyKind.NUMBERS,
    # Only the form with parentheses: without them the library computes strictly from left to right and so
    # gives 2 + 3 * 4 the truth 20.
    levels=(
        dict(min_terms=2, max_terms=2, min_digits=1, max_digits=1, operators=("+", "-", "*")),
        dict(min_terms=2, max_terms=3, min_digits=1, max_digits=1, operators=("+", "-", "*")),
        dict(min_terms=3, max_terms=4, min_digits=1, max_digits=1, operators=("+", "-", "*")),
        dict(min_terms=2, max_terms=5, min_digits=1, max_digits=2),
        dict(min_terms=2, max_terms=6, min_digits=1, max_digits=4),
    ),
    content=_expression_content,
    score=scores.integer,
    sound=_exact,
    work=_basic_work,
)


# Expressions of decimal numbers, rounded to significant digits.

_SIGNIFICANT = re.compile(r"maximum of ([0-9]+) significant digits")


def _decimal_sound(entry: Entry) -> bool:
    """Whether the library's answer is the exact value rounded once, half up, as the question asks. The library
    rounds after every step and half to even, which gives another result in 0.3 % of level 0 and 11 % of level
    3."""
    question = entry["question"]
    digits = _SIGNIFICANT.search(question)
    value = evaluate_or_none(question.rpartition("\n")[2].removesuffix("= ?"))
    if digits is None or value is None:
        return False
    rounding = Context(prec=int(digits[1]), rounding=ROUND_HALF_UP)
    return rounding.divide(Decimal(value.numerator), Decimal(value.denominator)) == Decimal(entry["answer"])


DECIMAL_ARITHMETIC = Family(
    name="decimal_arithmetic",
    title="Decimals",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_num_decimal_places=1, max_num_decimal_places=1, min_terms=2, max_terms=2, precision=4),
        dict(min_num_decimal_places=1, max_num_decimal_places=2, min_terms=2, max_terms=3, precision=5),
        dict(min_num_decimal_places=1, max_num_decimal_places=3, min_terms=2, max_terms=4, precision=5),
        dict(min_num_decimal_places=1, max_num_decimal_places=3, min_terms=2, max_terms=6, precision=8),
    ),
    content=lambda entry: contents.calculation(entry["question"].rpartition("\n")[2], entry["answer"]),
    score=scores.decimal,  # the library would accept a tenth more or less at level 0
    sound=_decimal_sound,
)


# Products of whole numbers.


def _factors(entry: Entry) -> list[int]:
    return [int(factor) for factor in entry["metadata"]["expression"].split(" * ")]


def _products_sound(entry: Entry) -> bool:
    """Whether there is something to multiply: with a factor of 0 or 1 the answer is one of the factors."""
    factors = _factors(entry)
    return min(factors) > 1 and prod(factors) == int(entry["answer"])


def _products_work(entry: Entry) -> str:
    """Returns the work factor by factor; for a long factor, digit by digit."""
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


PRODUCTS = Family(
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
    sound=_products_sound,
    work=_products_work,
    held_out_share=3,  # the times table has 36 products, three numbers of one digit make 120
)


# An expression of given numbers that makes another one.

_COUNTDOWN_ASKED = (
    "Using all the numbers {numbers}, create an expression that equals {target}.\n"
    "You can only use each number once.",
    "Find a way to make {target} using all of these numbers: {numbers}.\nEach number can only be used once.",
    "Calculate {target} using all of these numbers: {numbers}.\nEach number may be used at most once.",
)
_COUNTDOWN_FORMAT = """

Final answer format instructions:
1. Provide your solution as a arithmetic expression (no '=' sign).
2. Do not include the target number in the expression.
3. Use '*' for multiplication.
4. Use '/' for division.
5. Do not include any other text or formatting.
"""


class _Countdowns:
    """Generates the library's items without sympy, whose import takes longer than all others in the child."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.seed = 0
        self._settings = settings

    def __getitem__(self, index: int) -> Entry:
        """Raises ValueError, which makes the item unsound, if a hundred expressions are all out of bounds."""
        rng, settings = Random(self.seed + index), self._settings
        count = rng.randint(settings["min_numbers"], settings["max_numbers"])
        for _ in range(100):
            numbers, operators, target = self._drawn(rng, count)
            if settings["min_target"] <= target <= settings["max_target"]:
                break
        else:
            raise ValueError("no expression within the bounds")
        answer = _as_sympy(operators, [str(number) for number in numbers])
        rng.shuffle(numbers)
        listed = ", ".join(map(str, numbers))
        asked = rng.choice(_COUNTDOWN_ASKED).format(numbers=listed, target=target)
        return {
            "question": f"{asked}{_COUNTDOWN_FORMAT}",
            "answer": answer,
            "metadata": {"numbers": numbers, "target": target, "expression": answer},
        }

    def _drawn(self, rng: Random, count: int) -> tuple[list[int], str, int]:
        """Returns numbers, the operators between them (applied from left to right), and the value. A division
        uses one of the remaining numbers that divides the value so far; if none does, it becomes a subtraction.
        """
        settings = self._settings
        numbers = [rng.randint(settings["min_value"], settings["max_value"]) for _ in range(count)]
        operators, value = "", numbers[0]
        for place in range(1, count):
            operator = rng.choice(settings["operators"])
            if operator == "/":
                rest = numbers[place:]
                rng.shuffle(rest)
                if divisor := next((number for number in rest if value % number == 0), 0):
                    numbers[place] = divisor
                else:
                    operator = "-"
            number = numbers[place]
            match operator:
                case "+":
                    value += number
                case "-":
                    value -= number
                case "*":
                    value *= number
                case _:
                    value //= number
            operators += operator
        return numbers, operators, value


def _as_sympy(operators: str, numbers: Sequence[str]) -> str:
    """Formats an expression, evaluated from left to right, as sympy does. At most five numbers: sympy's order
    of more terms was not compared.

    >>> _as_sympy("+*-", "1234"), _as_sympy("-/+", "1234"), _as_sympy("/*/", "1234")
    ('3*(1 + 2) - 4', '4 + (1 - 2)/3', '1*3/(2*4)')
    """
    inner, divided_first, added = "", False, ""
    factors, divisors = [numbers[0]], list[str]()
    for operator, number in zip(operators, numbers[1:], strict=True):
        if operator in "+-":
            added += f" {operator} {number}"
            continue
        if added:
            inner = _written(factors, inner, divisors, divided_first, added)
            factors, divisors, divided_first, added = [], [], operator == "/", ""
        (factors if operator == "*" else divisors).append(number)
    return _written(factors, inner, divisors, divided_first, added)


def _written(factors: list[str], inner: str, divisors: list[str], divided_first: bool, added: str) -> str:
    """Formats a product with a sum as its last factor, and what was added to it. A sum that was divided before
    it was multiplied comes last."""
    above, below = "*".join([*factors, *([f"({inner})"] if inner else [])]), "*".join(divisors)
    whole = above + (f"/({below})" if len(divisors) > 1 else f"/{below}" if below else "")
    if divided_first and added:
        return f"{'-' if added.startswith(' -') else ''}{added[3:]} + {whole}"
    return whole + added


_EXPRESSION = re.compile(r"[-+*/() 0-9]{1,80}")
"""An expression of at most 80 characters, so that its parentheses cannot nest deeply."""
_NUMBER = re.compile(r"[0-9]+")


def _countdown_score(answer: str, entry: Entry) -> float:
    """Scores 1 for any expression of + - * / and parentheses that has the value and uses each of the numbers
    once. The library executes the answer."""
    answer = answer.strip(reading.SPACE)
    if not _EXPRESSION.fullmatch(answer):
        return 0.0
    used = sorted(map(int, _NUMBER.findall(answer)))
    metadata = entry["metadata"]
    return float(used == sorted(metadata["numbers"]) and evaluate_or_none(answer) == metadata["target"])


def _countdown_sound(entry: Entry) -> bool:
    return _countdown_score(entry["answer"], entry) == 1.0


def _countdown_work(entry: Entry) -> str:
    return f"{entry['answer']} = {entry['metadata']['target']}."


def _countdown_level(
    numbers: tuple[int, int], value: tuple[int, int], target: tuple[int, int], operators: str = "+-*/"
) -> dict[str, object]:
    bounds = {"numbers": numbers, "value": value, "target": target}
    least = {f"min_{name}": bound[0] for name, bound in bounds.items()}
    most = {f"max_{name}": bound[1] for name, bound in bounds.items()}
    return {**least, **most, "operators": tuple(operators)}


def _countdown_content(entry: Entry) -> Content:
    """Returns numbers and target, independent of the wording."""
    return *sorted(entry["metadata"]["numbers"]), "makes", entry["metadata"]["target"]


COUNTDOWN = Family(
    name="countdown",
    title="Target number",
    kind=FamilyKind.NUMBERS,
    levels=(
        _countdown_level((3, 3), (2, 9), (2, 60), "+-*"),
        _countdown_level((3, 4), (1, 20), (1, 100)),
        _countdown_level((4, 4), (1, 20), (1, 1000)),
        _countdown_level((4, 5), (1, 50), (1, 5000)),
    ),
    opened=_Countdowns,
    content=_countdown_content,
    wording=replaced(
        ("a arithmetic", "an arithmetic"),
        ("may be used at most once", "must be used exactly once"),
        ("can only be used once", "must be used exactly once"),
    ),
    score=_countdown_score,
    sound=_countdown_sound,
    work=_countdown_work,
)
