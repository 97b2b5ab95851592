"""Exact arithmetic on the library's questions, to verify its answers, and on a model's work. A model's answer
is evaluated only if it is itself an expression (countdown), and only after its length was limited.

The library computes `/` as floor division in basic_arithmetic and rounds after every step in
decimal_arithmetic, so some of its answers are false. Evaluating the question in fractions finds them.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction

_TOKEN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?|[a-z]|[-+*/()])")


class ExpressionError(ValueError):
    """The text is not an arithmetic expression, divides by zero or uses an unknown variable."""


def evaluate(text: str, values: Mapping[str, Fraction] | None = None, digits: int = 0) -> Fraction:
    """Returns the exact value of an expression of numbers, variables, + - * / and parentheses. `digits`: of a
    numerator or denominator on the way, at most; 0 for any. Raises ExpressionError.

    >>> evaluate("-( 1 - 3 ) / 4"), evaluate("2*x + 1", {"x": Fraction(3)})
    (Fraction(1, 2), Fraction(7, 1))
    """
    reader = _Reader(text, values or {}, 10**digits if digits else 0)
    value = reader.sum()
    if reader.at < len(reader.tokens):
        raise ExpressionError(f"unexpected {reader.tokens[reader.at]!r} in {text!r}")
    return value


def evaluate_or_none(text: str) -> Fraction | None:
    """Returns the exact value of an expression; None where `evaluate` raises ExpressionError."""
    try:
        return evaluate(text)
    except ExpressionError:
        return None


class _Reader:
    """Recursive-descent parser over the tokens."""

    def __init__(self, text: str, values: Mapping[str, Fraction], most: int) -> None:
        self.values, self.most = values, most
        self.tokens: list[str] = []
        self.at = 0
        place = 0
        text = text.strip()
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:
                raise ExpressionError(f"cannot read {text[place:]!r}")
            self.tokens.append(match[1])
            place = match.end()

    def sum(self) -> Fraction:
        value = self._product()
        while (sign := self._take("+", "-")) is not None:
            term = self._product()
            value = value + term if sign == "+" else value - term
        return value

    def _product(self) -> Fraction:
        value = self._factor()
        while (sign := self._take("*", "/")) is not None:
            factor = self._factor()
            if sign == "/" and factor == 0:
                raise ExpressionError("division by zero")
            value = value * factor if sign == "*" else value / factor
            if self.most and max(abs(value.numerator), value.denominator) >= self.most:
                raise ExpressionError("a number gets too long")
        return value

    def _factor(self) -> Fraction:
        if self._take("-"):
            return -self._factor()
        if self._take("("):
            value = self.sum()
            if not self._take(")"):
                raise ExpressionError("a parenthesis is not closed")
            return value
        if self.at == len(self.tokens):
            raise ExpressionError("the expression ends too early")
        token = self.tokens[self.at]
        self.at += 1
        if token in self.values:
            return self.values[token]
        if token[0].isdigit():
            return Fraction(token)
        raise ExpressionError(f"unexpected {token!r}")

    def _take(self, *tokens: str) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at] in tokens:
            self.at += 1
            return self.tokens[self.at - 1]
        return None


def has_false_equation(work: str) -> bool:
    """Whether the work of an answer contains a false equation. Everything except equations of numbers is
    ignored. If there are spaces around the equals signs a side may contain spaces; otherwise a space ends an
    equation.

    >>> spaced = ("10 = 2 * 26. #2", "22 is 22 = 11 \u00d7 3. #1", "8 = 2 * 4; 1/0 = b", "2 + 1 = 3, 3 + 1 = 4")
    >>> [has_false_equation(work) for work in spaced]
    [True, True, False, False]
    >>> has_false_equation("4-1=3 3-7=-4 -4+1=-3 #-3"), has_false_equation("4-1=3 3-7=4 #4")
    (False, True)
    """
    return any(len(_values(piece)) > 1 for piece in pieces(work) if "=" in piece)


def pieces(work: str) -> Iterator[str]:
    """Yields a text's equations of numbers, and the words between them.

    >>> [*pieces("27 3 24/3=8 so 2 + 3 = 5 \u00d7 1, b")]
    ['27', '3', '24/3=8', 'so', ' 2 + 3 = 5 * 1', ',', 'b']
    """
    plain, at = work.translate(_SIGNS), 0
    for start, end in _equations(plain):
        equation = plain[start:end]
        yield from plain[at:start].split()
        yield from [equation] if _SPACED.search(equation) else equation.split()
        at = end
    yield from plain[at:].split()


def _equations(plain: str) -> Iterator[tuple[int, int]]:
    at = 0
    for apart in (*_APART.finditer(plain), None):
        end = apart.start() if apart is not None else len(plain)
        part = plain[at:end]
        if "=" in part.strip("="):
            yield end - len(part.lstrip("=")), at + len(part.rstrip("="))
        at = apart.end() if apart is not None else end


def _values(equation: str) -> set[Fraction]:
    found = set()
    for side in equation.split("="):
        with contextlib.suppress(ExpressionError, RecursionError):
            found.add(evaluate(side))
    return found


_SIGNS = str.maketrans("\u00d7\u00f7\u2212", "*/-")
_APART = re.compile(r"[^-+*/() 0-9.=]+|={2,}|(?<![0-9])[0-9]+(?:\.[0-9]+){2,}|(?<![0-9])\.|\.(?![0-9])")
"""What cannot stand inside an equation. A text is split at these, and each piece is one equation or none. A
pattern that searched for equations would try every place of a long text, in quadratic time."""
_SPACED = re.compile(r" =|= ")
