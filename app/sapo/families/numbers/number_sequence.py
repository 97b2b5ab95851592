"""The next number of a sequence."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise, product

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, FamilyKind

Step = tuple[str, int]
"""What is done to a number: `+` or `*` with another one, `square`, `half` (rounded down) or `before`, which
adds the number before it in the sequence, if there is one."""


@cache
def _rules() -> tuple[tuple[Step, ...], ...]:
    """Every rule of one step and of two, the shortest first."""
    others = [number for number in range(-10, 11) if number]
    steps: list[Step] = [("+", number) for number in others] + [
        ("*", number) for number in others if number != 1
    ]
    steps += [("before", 0), ("half", 0), ("square", 0)]
    return (*((step,) for step in steps), *product(steps, repeat=2))


def _after(step: Step, number: int, before: int) -> int:
    match step:
        case "+", other:
            return number + other
        case "*", other:
            return number * other
        case "before", _:
            return number + before
        case "half", _:
            return number // 2
        case _:
            return number * number


def _next(rule: tuple[Step, ...], number: int, before: int) -> int:
    for step in rule:
        number = _after(step, number, before)
    return number


def _fitting(shown: list[int]) -> Iterator[tuple[Step, ...]]:
    """The rules by which every number that is shown follows from those before it, the shortest first."""
    *pairs, (before, number, after) = zip([0, *shown], shown, shown[1:], strict=False)
    for rule in _rules():
        if _next(rule, number, before) == after and all(_next(rule, n, b) == a for b, n, a in pairs):
            yield rule


def _shown(entry: Entry) -> list[int]:
    return list(entry["metadata"]["sequence"][:-1])


def _after_two(shown: list[int]) -> Iterator[int]:
    """What follows by rules of two free numbers: each number adds up from the two before it, as in a Fibonacci
    sequence, or every other number grows by the same step. Four numbers at least are shown."""
    triples = list(zip(shown, shown[1:], shown[2:], strict=False))
    for rule in _rules():
        if ("before", 0) in rule and all(_next(rule, n, b) == a for b, n, a in triples):
            yield _next(rule, shown[-1], shown[-2])
    if len(steps := {last - first for first, _, last in triples}) == 1:
        yield shown[-2] + steps.pop()


def _sound(entry: Entry) -> bool:
    """Whether a rule of at most two steps explains the sequence, no other one goes on differently, and the
    answer is not the last number once more. To 10, 5, 2, 1 halves are as good as differences that shrink by
    2."""
    shown, truth = _shown(entry), int(entry["answer"])
    following = {_next(rule, shown[-1], shown[-2]) for rule in _fitting(shown)}
    differences = [after - number for number, after in pairwise(shown)]
    bends = {after - number for number, after in pairwise(differences)}
    if len(bends) == 1:
        following.add(shown[-1] + differences[-1] + bends.pop())
    following.update(_after_two(shown))
    return following == {truth} and truth != shown[-1]


def _work(entry: Entry) -> str:
    """The shortest rule at the last number shown, then at the one asked for."""
    shown = _shown(entry)
    rule = next(_fitting(shown))
    before, last, latest = shown[-3:]
    return f"{_worked(rule, last, before)} {_worked(rule, latest, last)}"


def _worked(rule: tuple[Step, ...], number: int, before: int) -> str:
    said = []
    for step in rule:
        after = _after(step, number, before)
        match step:
            case "half", _:
                said.append(f"Half of {number} is {after}.")
            case "square", _:
                said.append(f"{_in(number)} * {_in(number)} = {after}.")
            case "*", other:
                said.append(f"{number} * {_in(other)} = {after}.")
            case kind, other:
                other = before if kind == "before" else other
                said.append(f"{number} {'-' if other < 0 else '+'} {abs(other)} = {after}.")
        number = after
    return " ".join(said)


def _in(number: int) -> str:
    return f"({number})" if number < 0 else str(number)


FAMILY = Family(
    name="number_sequence",
    title="Sequences",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_terms=8, max_terms=8, max_complexity=1),
        dict(min_terms=6, max_terms=8, max_complexity=1),
        dict(min_terms=5, max_terms=8, max_complexity=2),
        dict(min_terms=4, max_terms=8, max_complexity=3),
    ),
    content=lambda entry: tuple(_shown(entry)),
    score=scores.integer,
    sound=_sound,
    work=_work,
)
