"""Parses propositional formulas without eval: a formula becomes its truth table, one bit per row. Reads at most
MAX_TOKENS tokens and MAX_DEPTH nested parentheses, each once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product

MAX_TOKENS = 256
MAX_DEPTH = 32  # the parser recurses; Python's stack allows hundreds

NOT, AND, OR, IMPLIES, IFF = "¬∧∨→↔"


class FormulaError(ValueError):
    """The text is not a formula over the given variables, or it is too long or too deeply nested."""


def truth_table(text: str, variables: Sequence[str]) -> int:
    """Returns the truth table of a formula: bit r is set if it holds in row r, where variable i is bit i of r.

    ¬ binds tightest, then ∧, ∨, → and ↔. A chain of → without parentheses is ambiguous and rejected. Raises
    FormulaError.

    >>> bin(truth_table("P ∧ ¬Q", "PQ")), bin(truth_table("P → Q", "PQ"))
    ('0b10', '0b1101')
    """
    reader = _Reader(text, variables)
    table = reader.formula()
    if reader.at < len(reader.tokens):
        raise FormulaError("something follows the formula")
    return table


def tautology_table(variables: Sequence[str]) -> int:
    """Returns the truth table of a tautology: all bits set."""
    return int((1 << (1 << len(variables))) - 1)


def occurrences(text: str, variables: Sequence[str]) -> int:
    """Returns the number of occurrences of variables in a formula, which is its length."""
    return sum(character in variables for character in text)


@cache
def shortest_formulas(variables: tuple[str, ...]) -> dict[int, str]:
    """Returns, by truth table, a shortest formula for each that needs at most three occurrences of variables,
    shortest first.

    >>> shortest_formulas(("P", "Q"))[truth_table("¬(¬P ∨ ¬Q)", "PQ")]
    'P ∧ Q'
    """
    every = tautology_table(variables)
    known = {truth_table(name, variables): name for name in variables}
    known |= {every & ~table: NOT + name for table, name in known.items()}
    by_length = [{}, dict(known)]
    for length in (2, 3):
        found: dict[int, str] = {}
        for part in range(1, length):
            for (a, left), (b, right) in product(by_length[part].items(), by_length[length - part].items()):
                left = f"({left})" if part > 1 else left
                right = f"({right})" if length - part > 1 else right
                for sign, table in (
                    (AND, a & b),
                    (OR, a | b),
                    (IMPLIES, every & ~a | b),
                    (IFF, every & ~(a ^ b)),
                ):
                    if table not in known:
                        known[table] = found[table] = f"{left} {sign} {right}"
        by_length.append(found)
    return known


class _Reader:
    """Recursive-descent parser over the tokens; every method returns the truth table of what it read."""

    def __init__(self, text: str, variables: Sequence[str]) -> None:
        rows = range(1 << len(variables))
        self.every = tautology_table(variables)
        self.tables = {name: sum(1 << row for row in rows if row >> i & 1) for i, name in enumerate(variables)}
        self.tokens = [character for character in text if character not in " \t\r\n"]
        self.at = 0
        self.depth = 0
        if len(self.tokens) > MAX_TOKENS:
            raise FormulaError("too long")

    def formula(self) -> int:
        table = self._implication()
        while self._take(IFF):
            table = self.every & ~(table ^ self._implication())
        return table

    def _implication(self) -> int:
        table = self._disjunction()
        if self._take(IMPLIES):
            table = self.every & ~table | self._disjunction()
            if self._take(IMPLIES):
                raise FormulaError("a chain of → needs parentheses")
        return table

    def _disjunction(self) -> int:
        table = self._conjunction()
        while self._take(OR):
            table |= self._conjunction()
        return table

    def _conjunction(self) -> int:
        table = self._negation()
        while self._take(AND):
            table &= self._negation()
        return table

    def _negation(self) -> int:
        negated = False
        while self._take(NOT):
            negated = not negated
        table = self._atom()
        return self.every & ~table if negated else table

    def _atom(self) -> int:
        if self._take("("):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise FormulaError("too deep")
            table = self.formula()
            if not self._take(")"):
                raise FormulaError("a parenthesis is not closed")
            self.depth -= 1
            return table
        name = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if name not in self.tables:
            raise FormulaError("a variable was expected")
        self.at += 1
        return self.tables[name]

    def _take(self, token: str) -> bool:
        taken = self.at < len(self.tokens) and self.tokens[self.at] == token
        self.at += taken
        return taken
