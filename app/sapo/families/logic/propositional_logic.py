"""Conclusions from premises: which ones are worth a reward.

The library pays for every formula that follows, except tautologies and single variables. Then the constant
answer `P ∨ Q` solves 69 % to 100 % of its items, whatever the premises say, and copying a premise solves most
of the rest. Here a conclusion is right when it follows from the premises together and from no premise alone,
and is shorter than any two of them put side by side: it has to be inferred and cannot be copied. Single
variables count: `Q` is what there is to conclude from `P` and `P → Q`. The best constant answer then solves a
quarter of our levels, and every way of putting premises together none.
"""

from __future__ import annotations

import re
from itertools import permutations

import msgspec

from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.reading.formula import IMPLIES, FormulaError, everywhere, occurrences, shortest, truth_table

_INNERMOST = re.compile(r"\(([^() ]+) ([∧∨→↔]) ([^() ]+)\)")


_RULES = """The following is a question of propositional logic. Infer a conclusion from the premises.

- It follows from the premises together, but from none of them alone.
- It is not true in every case.
- It is short: with a letter counted each time it is written, it has fewer letters than the two shortest
  premises together.

Give the conclusion alone as your final answer, in the letters of the premises and these symbols:
- OR = ∨
- AND = ∧
- IMPLIES = →
- IFF = ↔
- NOT = ¬"""


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


def _wording(entry: Entry) -> str:
    premises = "\n".join(f"{n}. {premise}" for n, premise in enumerate(entry["metadata"]["premises"], 1))
    return f"""{_RULES}

Given:
{premises}
What can we conclude?"""


def _score(answer: str, entry: Entry) -> float:
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


def _solution(entry: Entry) -> str:
    """A shortest right conclusion, empty where three occurrences of variables do not suffice for one."""
    premises = _premises(entry)
    for table, text in shortest(premises.variables).items():
        if premises.infer(table, occurrences(text, premises.variables)):
            return text
    return ""


def _sound(entry: Entry) -> bool:
    """Whether the premises can be true together (everything follows from the others: 10 % to 23 % of the
    items), and there is a right conclusion that is short."""
    return _premises(entry).together != 0 and _solution(entry) != ""


def _premises(entry: Entry) -> _Premises:
    variables = tuple(entry["metadata"]["variables"])
    texts = entry["metadata"]["premises"]
    tables = tuple(truth_table(text, variables) for text in texts)
    together = everywhere(variables)
    for table in tables:
        together &= table
    lengths = sorted(occurrences(text, variables) for text in texts)
    return _Premises(variables, tables, together, sum(lengths[:2]))


def _content(entry: Entry) -> Content:
    """The premises in any order, whatever the letters and the order of what is symmetric. Not by truth table:
    the first level has 28 of those."""
    texts = entry["metadata"]["premises"]
    orders = (str.maketrans("PQRS", "".join(letters)) for letters in permutations("PQRS"))
    return min(tuple(sorted(_sided(text.translate(order)) for text in texts)) for order in orders)


def _sided(text: str) -> str:
    """A formula with the lesser side of what is symmetric first.

    >>> _sided("¬(R ∨ (Q → P))")
    '¬[R∨[Q→P]]'
    """
    while (pair := _INNERMOST.search(text)) is not None:
        left, sign, right = pair.groups()
        if sign != IMPLIES:
            left, right = sorted((left, right))
        text = f"{text[: pair.start()]}[{left}{sign}{right}]{text[pair.end() :]}"
    return text


FAMILY = Family(
    name="propositional_logic",
    title="Logic",
    kind=FamilyKind.LOGIC,
    # A premise of complexity 1 is a bare variable: two such premises make only four different questions.
    levels=(
        dict(min_vars=3, max_vars=3, min_statements=2, max_statements=3, min_complexity=2, max_complexity=2),
        dict(min_vars=3, max_vars=4, min_statements=2, max_statements=3, min_complexity=2, max_complexity=2),
        dict(min_vars=3, max_vars=4, min_statements=2, max_statements=4, min_complexity=2, max_complexity=3),
    ),
    content=_content,
    wording=_wording,
    score=_score,
    sound=_sound,
    solution=_solution,
    # Many conclusions are right, so a constant one often is.
    guess_rate=0.28,
    paper=True,
)
