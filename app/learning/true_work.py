"""Reads the work in a peer's right answer, keeps the steps that are true and lead to the result, and writes
these in this node's own form.

A model that imitates a right answer learns all of it: an advertisement, a link spelled in letters, digits that
stand for words, the working of another question. So nothing that a peer wrote is taught as it stands. Its work
is read as steps, each from numbers that are known already (at first those of its question) to new ones:

- an equation of numbers that is true, says something (`0 = 0` does not) and is not there twice;
- a drill, a run of numbers of which each follows from those before: the remainders of Euclid's algorithm, the
  digits of a number in another base, halves with their remainders, the letters of a word with their places.

Everything else is left out, as are steps from which nothing leads to the result. So what is left has no
character that its author could choose, except which true steps lead there, and there are about as many as the
question has numbers. A model's slip is no step either: of the right answers of starters 28 % had work that was
wrong.

Pure functions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from app.sapo.asking import SHORT_MARK, extract_answer, work_and_answer
from app.sapo.reading.expression import evaluate_or_none, has_false_equation, pieces

MAX_WORK, MAX_RUNS = 1200, 16
"""Maximum characters of work that are read, and runs of numbers or letters."""
_NUMBER = r"(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{0,5}[1-9])?"
_TERMS = rf"-?{_NUMBER}(?:[-+*/]-?{_NUMBER})+"
_FACTOR = rf"(?:{_NUMBER}|\((?:{_TERMS}|-{_NUMBER})\))"
_EXPRESSION = re.compile(rf"-\({_NUMBER}\)|-?{_FACTOR}(?:[-+*/]-?{_FACTOR})*")
_VALUE = re.compile(rf"(?!-0$)-?{_NUMBER}")
_FRACTION = re.compile(rf"{_NUMBER}/{_NUMBER}")
_DIVISION = re.compile("-?[0-9]+/-?[0-9]+=-?[1-9][0-9]*")  # without remainder: a model may guess the divisor
_ASKED = re.compile(r"(?:(-) ?)?([0-9]+(?:\.[0-9]+)?)")
_NUMBERS = re.compile(_NUMBER)
_OPERAND = re.compile(rf"(?:(?<![0-9)])-)?{_NUMBER}")
_NEGATED = re.compile(r"- ?\(")
_BLANKS = re.compile(r" *([-+*/()]) *")
_AROUND = " .,;"
_KINDS = {
    "number": re.compile("0|[1-9][0-9]{0,11}"),
    "half": re.compile("([1-9][0-9]{0,11}):([01])"),
    "quotient": re.compile("([0-9]{1,12})r([0-9a-z])"),
    "letters": re.compile("(?:[A-Za-z][0-9]{1,2})+"),
}
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_READ = "read "
_BASES = {2, 8, 16}  # which questions name by words


class _Step(NamedTuple):
    """A true step as this node writes it, what it needs and what it makes known."""

    text: str
    needs: frozenset[str]
    makes: frozenset[str]


def true_work(question: str, answer: str) -> str | None:
    """Returns a right answer as this node writes it: the true steps from its question to its result, and the
    result; None if they don't lead there.

    >>> true_work("9 - 6 + 1 =", "Buy fish! 9-6 = 3, b u y 777; 1 + 1 = 2; 3 + 1 = 4. Visit 8 0 0 8 #4")
    '9-6=3 3+1=4 #4'
    >>> true_work("Simplify 24/27", "27 24 3 0 24/3=8 27/3=9 #8/9")
    '27 24 3 0 24/3=8 27/3=9 #8/9'
    >>> true_work("gcd of 56, 24", "56 24 16 8 0 #8"), true_work("9 - 6 + 1 =", "0 = 0 n + 6 = n + 6 #4")
    (None, None)
    """
    result = extract_answer(answer)
    work, _ = work_and_answer(answer)
    if result is None or len(work) > MAX_WORK or has_false_equation(work):
        return None
    steps = [*_steps(work, question)]
    made = frozenset[str]().union(*(step.makes for step in steps))
    parts = [result] if result in made or not _FRACTION.fullmatch(result) else result.split("/")
    if not made.issuperset(parts):
        return None
    wanted, kept = Counter(parts), list[_Step]()
    for step in reversed(steps):  # each step is kept for one that needs it
        if any(wanted[one] for one in step.makes):
            wanted = wanted - Counter(step.makes) + Counter(step.needs)
            kept.insert(0, step)
    if _too_many(kept, question):
        return None
    return f"{' '.join(step.text for step in kept)} {SHORT_MARK}{result}"


def _too_many(steps: Sequence[_Step], question: str) -> bool:
    """Whether the work is padded: it has more steps than a question with this many numbers needs, or more
    zeros and ones, with which anyone can add true equations that lead nowhere (`3+0=3`)."""
    asked = Counter(number for _, number in _ASKED.findall(question))
    equations = [step.text.split("=")[0] for step in steps if "=" in step.text]
    drills = len(steps) - len(equations)
    used = Counter(number for one in equations for number in _NUMBERS.findall(one))
    made = Counter(number for step in steps for number in step.makes)
    guessed = sum(len(step.makes) > 1 for step in steps)
    most = asked.total() - 1 + len(_NEGATED.findall(question)) + drills + guessed
    return (
        drills > max(1, asked.total() - 1)
        or len(equations) > most
        or any(used[one] > asked[one] + made[one] + made[f"-{one}"] for one in ("0", "1"))
    )


def _steps(work: str, question: str) -> Iterator[_Step]:
    """Yields the true steps of a work in their order. One number may be guessed: one that divides another."""
    asked = _ASKED.findall(question)
    known = {one for minus, number in asked for one in (number, minus and f"-{number}")}
    numbers = frozenset(known)
    guesses, runs = 1, MAX_RUNS
    for kind, run in groupby(pieces(work), _kind):
        tokens = [one.strip(_AROUND) for one in run]
        if kind != "equation":
            runs -= kind != ""
            step = _drill(kind, tokens, question, known, numbers) if runs >= 0 else None
            if step is not None:
                known |= step.makes
                yield step
            continue
        for step in filter(None, map(_equation, tokens)):
            unknown = step.needs - known
            if not unknown or (len(unknown) <= guesses and _DIVISION.fullmatch(step.text)):
                guesses -= len(unknown)
                known |= step.makes | unknown
                yield step._replace(makes=step.makes | unknown, needs=step.needs - unknown)


def _kind(piece: str) -> str:
    plain = piece.strip(_AROUND)
    return "equation" if "=" in piece else next((kind for kind in _KINDS if _KINDS[kind].fullmatch(plain)), "")


def _equation(text: str) -> _Step | None:
    """An equation of an expression and its value, in either order. The caller knows that it is true."""
    sides = [_BLANKS.sub(r"\1", side.strip()) for side in text.split("=")]
    values = [side for side in sides if _VALUE.fullmatch(side)]
    expressions = [side for side in sides if _EXPRESSION.fullmatch(side) and side not in values]
    if not values or not expressions or len(values) + len(expressions) < len(sides):
        return None
    if any(evaluate_or_none(side) is None for side in expressions):  # it divides by zero
        return None
    needs = frozenset(_OPERAND.findall(expressions[0]))
    if "-0" in needs:
        return None
    return _Step(f"{expressions[0]}={values[-1]}", needs, frozenset(values[-1:]))


def _drill(
    kind: str, tokens: Sequence[str], question: str, known: set[str], numbers: frozenset[str]
) -> _Step | None:
    """A run of tokens of one kind, if it is exactly what follows from known numbers, or from the question's
    words and `numbers`."""
    found: tuple[str, str] | None = None  # what it needs and makes
    if kind == "number":
        run = [*map(int, tokens)]
        found = _euclid(run, known, len(numbers)) or _decimal(run, numbers)
    elif kind == "half":
        found = _halves(tokens, known)
    elif kind == "quotient":
        found = _quotients(tokens, known, _bases(numbers))
    elif kind == "letters" and len(tokens) == 1:
        for word in re.findall("[A-Za-z]+", question):
            if tokens[0] == "".join(f"{letter}{at}" for at, letter in enumerate(word, 1)):
                found = ("", word[::-1])
    if found is None:
        return None
    return _Step(" ".join(tokens), frozenset(found[:1]), frozenset(found[1:]))


def _euclid(run: Sequence[int], known: set[str], most: int) -> tuple[str, str] | None:
    """The greatest common divisor, from the remainders of one or more pairs.

    >>> _euclid([27, 24, 3, 0], {"24", "27"}, 1), _euclid([27, 24, 8, 0], {"24", "27"}, 1)
    (('', '3'), None)
    """
    known, rest, divisor = set(known), [*run], 0
    if run.count(0) > most:
        return None
    while rest:
        if len(rest) < 3 or not {str(rest[0]), str(rest[1])} <= known or rest[0] < rest[1]:
            return None
        a, b, *rest = rest
        while b:
            a, b = b, a % b
            if not rest or rest.pop(0) != b:
                return None
        divisor = a
        known.add(str(divisor))
    return ("", str(divisor))


def _decimal(run: Sequence[int], numbers: frozenset[str]) -> tuple[str, str] | None:
    """One of the numbers read digit by digit, in a base that is another.

    >>> _decimal([4, 22, 112], frozenset({"422", "5"}))
    ('', 'read 112')
    """
    for digits in numbers:
        for base in _bases(numbers) if digits.isdigit() and len(digits) == len(run) else ():
            value, follows = 0, True
            for digit, number in zip(digits, run, strict=True):
                value = value * base + int(digit)
                follows &= int(digit) < base and value == number
            if follows:
                return ("", f"{_READ}{value}")
    return None


def _quotients(tokens: Sequence[str], known: set[str], bases: set[int]) -> tuple[str, str] | None:
    """The digits in one of the bases of a number that `_decimal` read, by repeated division.

    >>> _quotients(["1r2", "0r1"], {"read 5"}, {3})
    ('read 5', '12')
    >>> _quotients(["5rr"], {"read 5"}, {3})
    """
    quotient, remainder = tokens[0][:-2], tokens[0][-1]  # "r" may be a digit too
    for base in bases:
        value = number = int(quotient) * base + _DIGITS.index(remainder)
        digits, expected = "", list[str]()
        while value and len(expected) <= len(tokens):
            value, digit = divmod(value, base)
            digits = _DIGITS[digit] + digits
            expected.append(f"{value}r{_DIGITS[digit]}")
        if f"{_READ}{number}" in known and expected == [*tokens]:
            return (f"{_READ}{number}", digits)
    return None


def _halves(tokens: Sequence[str], known: set[str]) -> tuple[str, str] | None:
    """The number of ones in a known number, from its halves and their remainders.

    >>> _halves(["5:1", "2:0", "1:1"], {"5"})
    ('5', '2')
    """
    first = value = int(tokens[0].split(":")[0])
    expected = list[str]()
    while value:
        expected.append(f"{value}:{value % 2}")
        value //= 2
    return (str(first), str(first.bit_count())) if str(first) in known and expected == [*tokens] else None


def _bases(numbers: frozenset[str]) -> set[int]:
    return _BASES | {
        int(one) for one in numbers if one.isdigit() and len(one) <= 2 and 2 <= int(one) <= len(_DIGITS)
    }
