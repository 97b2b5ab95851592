"""Conclusions from premises: which ones are worth a reward.

The library pays for every formula that follows, except tautologies and single variables. Then the constant
answer `P ∨ Q` solves 69 % to 100 % of its items, whatever the premises say, and copying a premise solves most
of the rest. Here a conclusion is right when it follows from the premises together and from no premise alone,
and is shorter than any two of them put side by side: it has to be inferred and cannot be copied. Single
variables count: `Q` is what there is to conclude from `P` and `P → Q`. The best constant answer then solves a
quarter of our levels, and every way of putting premises together none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from app.sapo.scorers.formula import FormulaError, everywhere, occurrences, shortest, truth_table


class _Premises(msgspec.Struct, frozen=True):
    """The premises as truth tables, each and together, and the length from which on a conclusion is too
    long."""

    variables: tuple[str, ...]
    tables: tuple[int, ...]
    together: int
    too_long: int

    def imply(self, table: int) -> bool:
        return self.together & ~table == 0

    def infer(self, table: int, length: int) -> bool:
        alone = any(premise & ~table == 0 for premise in self.tables)
        return self.imply(table) and not alone and length < self.too_long


def conclusion(answer: str, entry: Mapping[str, Any]) -> float:
    """1 for a conclusion that had to be inferred, 0.25 for one that follows, but from one premise alone or at
    length. 0 for what does not follow, says nothing, or is no formula over the question's variables."""
    premises = _premises(entry)
    try:
        table = truth_table(answer, premises.variables)
    except FormulaError:
        return 0.0
    if table == everywhere(premises.variables) or not premises.imply(table):
        return 0.0
    return 1.0 if premises.infer(table, occurrences(answer, premises.variables)) else 0.25


def solution(entry: Mapping[str, Any]) -> str | None:
    """A shortest right conclusion, None where three occurrences of variables do not suffice for one."""
    premises = _premises(entry)
    for table, text in shortest(premises.variables).items():
        if premises.infer(table, occurrences(text, premises.variables)):
            return text
    return None


def sound(entry: Mapping[str, Any]) -> bool:
    """Whether the premises can be true together (everything follows from the others: 10 % to 23 % of the
    items), and there is a right conclusion that is short."""
    return _premises(entry).together != 0 and solution(entry) is not None


def _premises(entry: Mapping[str, Any]) -> _Premises:
    variables = tuple(entry["metadata"]["variables"])
    texts = entry["metadata"]["premises"]
    tables = tuple(truth_table(text, variables) for text in texts)
    together = everywhere(variables)
    for table in tables:
        together &= table
    lengths = sorted(occurrences(text, variables) for text in texts)
    return _Premises(variables, tables, together, sum(lengths[:2]))
