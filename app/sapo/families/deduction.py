"""Deduction: who lies, and what follows from premises."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from typing import Any

import msgspec

from app.sapo import reading
from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.families.wording import fix_articles
from app.sapo.reading.formula import (
    IMPLIES,
    FormulaError,
    occurrences,
    shortest_formulas,
    tautology_table,
    truth_table,
)

# Who always tells the truth and who always lies, from what they say of each other.

_BLANKS = re.compile(r"[ \t]+")
_BETWEEN = re.compile(r", and |, | and |\. |\n+")
_ROLE = re.compile(r"([a-z]+) is (?:a|an) ([a-z]+)")

_TRIED = 3
"""Maximum assignments tried in worked answers; more would be too long."""


def _knights_score(answer: str, entry: Entry) -> float:
    """Scores 1 for everybody's role, each named once, in any order and case."""
    if not answer.isascii():
        return 0.0
    answer = _BLANKS.sub(" ", answer.strip(reading.SPACE)).lower()
    parts = [_ROLE.fullmatch(part) for part in _BETWEEN.split(answer.removesuffix("."))]
    said = [(part[1], part[2]) for part in parts if part]
    return float(
        len(said) == len(parts) and sorted(said) == sorted(_roles(entry, entry["metadata"]["solution"]))
    )


def _knights_wording(entry: Entry) -> str:
    text = re.sub(r"is a (\w+)/(\w+)", r"is a \1/a \2", str(entry["question"]))
    text = re.sub(r"(2 inhabitants: \w+), and", r"\1 and", text)
    return fix_articles(re.sub(r"\b([Hh]ero)s\b", r"\1es", text))


def _roles(entry: Entry, honest: Sequence[bool]) -> Iterator[tuple[str, str]]:
    """Yields the name and the role of each person, in lower case."""
    words = entry["metadata"]["knight_knave_terms"]
    for name, truly in zip(entry["metadata"]["names"], honest, strict=True):
        yield name.lower(), words["knight"] if truly else words["knave"]


def _holds(statement: Any, honest: Sequence[bool]) -> bool:
    """Whether a statement is true if exactly these people are honest. Raises ValueError for an unknown one."""
    kind, *parts = statement
    if kind in ("telling-truth", "lying"):
        truly: bool = honest[parts[0]]
        return truly if kind == "telling-truth" else not truly
    held: list[bool] = [_holds(part, honest) for part in parts]
    match kind:
        case "not":
            return not held[0]
        case "and":
            return all(held)
        case "or":
            return any(held)
        case "->":
            return not held[0] or held[1]
        case "<=>":
            return held[0] == held[1]
    raise ValueError(f"unknown statement {kind!r}")


def _held(entry: Entry, honest: Sequence[bool]) -> list[bool]:
    return [_holds(statement, honest) for statement in entry["metadata"]["statements"]]


def _tried(entry: Entry) -> Iterator[tuple[bool, ...]]:
    return product((True, False), repeat=len(entry["metadata"]["names"]))


def _knights_sound(entry: Entry) -> bool:
    """Whether the true answer is the only assignment in which honest people's statements are true and the
    others' false."""
    fitting = [honest for honest in _tried(entry) if _held(entry, honest) == list(honest)]
    return fitting == [tuple(entry["metadata"]["solution"])]


def _knights_work(entry: Entry) -> str:
    steps = []
    for honest in _tried(entry):
        held = _held(entry, honest)
        roles = ", ".join(role for _, role in _roles(entry, honest))
        steps.append(f"If {roles}: they say {', '.join(str(one).lower() for one in held)}.")
        if held == list(honest):
            break
    return " ".join(steps) if len(steps) <= _TRIED else ""


def _knights_content(entry: Entry) -> Content:
    """Returns what each person says, independent of the order of people, of symmetric parts, and of names and
    words. A truth table would not do: two people have only 40 of those."""
    statements = entry["metadata"]["statements"]

    def said(statement: Any, order: Sequence[int]) -> str:
        kind, *parts = statement
        if kind in ("telling-truth", "lying"):
            return f"{kind} {order[parts[0]]}"
        if kind == "not" and parts[0][0] in ("telling-truth", "lying"):  # not a knight: a knave
            other = "lying" if parts[0][0] == "telling-truth" else "telling-truth"
            return f"{other} {order[parts[0][1]]}"
        told = [said(part, order) for part in parts]
        return f"{kind} ({', '.join(told if kind == '->' else sorted(told))})"

    def ordered(order: Sequence[int]) -> Content:
        told = {order[person]: said(statement, order) for person, statement in enumerate(statements)}
        return tuple(told[person] for person in sorted(told))

    return min(ordered(order) for order in permutations(range(len(statements))))


def _knights_sort(entry: Entry) -> str:
    return "".join("TL"[not honest] for honest in entry["metadata"]["solution"])


def _as_if(honest: bool) -> Callable[[Entry], str]:
    words = "a_knight" if honest else "a_knave"

    def answer(entry: Entry) -> str:
        metadata = entry["metadata"]
        return ", ".join(f"{name} is {metadata['knight_knave_terms'][words]}" for name in metadata["names"])

    return answer


KNIGHTS_KNAVES = Family(
    name="knights_knaves",
    title="Knights and knaves",
    kind=FamilyKind.LOGIC,
    levels=(
        dict(n_people=2, depth_constraint=2, width_constraint=3),
        dict(n_people=2, depth_constraint=3, width_constraint=2),
        dict(n_people=3, depth_constraint=3, width_constraint=2),
        dict(n_people=4, depth_constraint=3, width_constraint=2),
    ),
    content=_knights_content,
    wording=_knights_wording,
    sort=_knights_sort,
    shortcuts={"all honest": _as_if(True), "all liars": _as_if(False)},
    score=_knights_score,
    sound=_knights_sound,
    work=_knights_work,
    held_out_share=4,  # two people who say one thing each, names apart, make a hundred questions
    guess_rate=0.3,  # names apart: two people have four answers
    thinned=({"TT": 0.89, "LT": 0.93, "TL": 0.9, "LL": 0.92}, {"TT": 0.6, "LT": 0.79, "TL": 0.81}),
    guess=(0.26, "that all are honest"),
)


# Conclusions from premises: which ones are worth a reward.
#
# The library pays for every formula that follows, except tautologies and single variables. Then the constant
# answer `P ∨ Q` solves 69 % to 100 % of its items, whatever the premises say, and copying a premise solves most
# of the rest. Here a conclusion is right when it follows from the premises together and from no premise alone,
# and is shorter than any two of them put side by side: it has to be inferred and cannot be copied. Single
# variables count: `Q` is what there is to conclude from `P` and `P → Q`. The best constant answer then solves a
# quarter of our levels, and every way of putting premises together none.

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
    """The premises as truth tables, separately and combined, and the length from which a conclusion is too
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


def _logic_wording(entry: Entry) -> str:
    premises = "\n".join(f"{n}. {premise}" for n, premise in enumerate(entry["metadata"]["premises"], 1))
    return f"""{_RULES}

Given:
{premises}
What can we conclude?"""


def _logic_score(answer: str, entry: Entry) -> float:
    """Scores 1 for a conclusion that had to be inferred, 0.25 for one that follows but from one premise alone
    or is too long, 0 for what does not follow, says nothing, or is not a formula over the question's variables.
    """
    premises = _premises(entry)
    try:
        table = truth_table(answer, premises.variables)
    except FormulaError:
        return 0.0
    if table == tautology_table(premises.variables) or not premises.imply(table):
        return 0.0
    return 1.0 if premises.infer(table, occurrences(answer, premises.variables)) else 0.25


def _logic_solution(entry: Entry) -> str:
    """Returns a shortest right conclusion; empty if it needs more than three occurrences of variables."""
    premises = _premises(entry)
    for table, text in shortest_formulas(premises.variables).items():
        if premises.infer(table, occurrences(text, premises.variables)):
            return text
    return ""


def _logic_sound(entry: Entry) -> bool:
    """Whether the premises are consistent (10 % to 23 % of the items are not) and there is a short right
    conclusion."""
    return _premises(entry).together != 0 and _logic_solution(entry) != ""


def _premises(entry: Entry) -> _Premises:
    variables = tuple(entry["metadata"]["variables"])
    texts = entry["metadata"]["premises"]
    tables = tuple(truth_table(text, variables) for text in texts)
    together = tautology_table(variables)
    for table in tables:
        together &= table
    lengths = sorted(occurrences(text, variables) for text in texts)
    return _Premises(variables, tables, together, sum(lengths[:2]))


def _logic_content(entry: Entry) -> Content:
    """Returns the premises in any order, independent of letters and of the order of symmetric parts. A truth
    table would not do: the first level has 28 of those."""
    texts = entry["metadata"]["premises"]
    orders = (str.maketrans("PQRS", "".join(letters)) for letters in permutations("PQRS"))
    return min(tuple(sorted(_sided(text.translate(order)) for text in texts)) for order in orders)


def _sided(text: str) -> str:
    """Returns a formula with the lesser operand of symmetric operators first.

    >>> _sided("¬(R ∨ (Q → P))")
    '¬[R∨[Q→P]]'
    """
    while (pair := _INNERMOST.search(text)) is not None:
        left, sign, right = pair.groups()
        if sign != IMPLIES:
            left, right = sorted((left, right))
        text = f"{text[: pair.start()]}[{left}{sign}{right}]{text[pair.end() :]}"
    return text


PROPOSITIONAL_LOGIC = Family(
    name="propositional_logic",
    title="Logic",
    kind=FamilyKind.LOGIC,
    # A premise of complexity 1 is a bare variable: two such premises make only four different questions.
    levels=(
        dict(min_vars=3, max_vars=3, min_statements=2, max_statements=3, min_complexity=2, max_complexity=2),
        dict(min_vars=3, max_vars=4, min_statements=2, max_statements=3, min_complexity=2, max_complexity=2),
        dict(min_vars=3, max_vars=4, min_statements=2, max_statements=4, min_complexity=2, max_complexity=3),
    ),
    content=_logic_content,
    wording=_logic_wording,
    score=_logic_score,
    sound=_logic_sound,
    solution=_logic_solution,
    # Many conclusions are right, so a constant one often is.
    guess_rate=0.28,
    guess=(0.25, "P → (Q ∧ R)"),
)
