"""Exact arithmetic on the library's own questions, to check its truths, and on a model's own work. An
answer comes here only where an expression is the answer (countdown), and after its length is bounded.

The library computes `/` as floor division in basic_arithmetic and rounds after every step in
decimal_arithmetic, so some of its truths are false. Working the question out in fractions finds them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

_TOKEN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?|[a-z]|[-+*/()])")


class ExpressionError(ValueError):
    """The text is not an arithmetic expression, divides by zero or names an unknown variable."""


def evaluate(text: str, values: Mapping[str, Fraction] | None = None) -> Fraction:
    """The exact value of an expression of numbers, variables, + - * / and parentheses. Raises ExpressionError.

    >>> evaluate("-( 1 - 3 ) / 4"), evaluate("2*x + 1", {"x": Fraction(3)})
    (Fraction(1, 2), Fraction(7, 1))
    """
    reader = _Reader(text, values or {})
    value = reader.sum()
    if reader.at < len(reader.tokens):
        raise ExpressionError(f"unexpected {reader.tokens[reader.at]!r} in {text!r}")
    return value


def exactly(text: str) -> Fraction | None:
    """The exact value, None if the text has none."""
    try:
        return evaluate(text)
    except ExpressionError:
        return None


class _Reader:
    """Recursive descent over the tokens."""

    def __init__(self, text: str, values: Mapping[str, Fraction]) -> None:
        self.values = values
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
