"""Who always tells the truth and who always lies, from what they say of each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from typing import Any

from app.sapo import reading
from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.families.wording import articled

_BLANKS = re.compile(r"[ \t]+")
_BETWEEN = re.compile(r", and |, | and |\. |\n+")
_ROLE = re.compile(r"([a-z]+) is (?:a|an) ([a-z]+)")

_TRIED = 3
"""Assignments; more are no short work."""


def _score(answer: str, entry: Entry) -> float:
    """1 for everybody's role, each named once, in any order and case."""
    if not answer.isascii():
        return 0.0
    answer = _BLANKS.sub(" ", answer.strip(reading.SPACE)).lower()
    parts = [_ROLE.fullmatch(part) for part in _BETWEEN.split(answer.removesuffix("."))]
    said = [(part[1], part[2]) for part in parts if part]
    return float(
        len(said) == len(parts) and sorted(said) == sorted(_roles(entry, entry["metadata"]["solution"]))
    )


def _wording(entry: Entry) -> str:
    text = re.sub(r"is a (\w+)/(\w+)", r"is a \1/a \2", str(entry["question"]))
    text = re.sub(r"(2 inhabitants: \w+), and", r"\1 and", text)
    return articled(re.sub(r"\b([Hh]ero)s\b", r"\1es", text))


def _roles(entry: Entry, honest: Sequence[bool]) -> Iterator[tuple[str, str]]:
    """The name and the role of each, both in small letters."""
    words = entry["metadata"]["knight_knave_terms"]
    for name, truly in zip(entry["metadata"]["names"], honest, strict=True):
        yield name.lower(), words["knight"] if truly else words["knave"]


def _holds(statement: Any, honest: Sequence[bool]) -> bool:
    """Whether a statement is true if these are honest. Raises ValueError for an unknown one."""
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


def _sound(entry: Entry) -> bool:
    """Whether the truth is the only way in which the honest ones say what is true and the others what is
    not."""
    fitting = [honest for honest in _tried(entry) if _held(entry, honest) == list(honest)]
    return fitting == [tuple(entry["metadata"]["solution"])]


def _work(entry: Entry) -> str:
    steps = []
    for honest in _tried(entry):
        held = _held(entry, honest)
        roles = ", ".join(role for _, role in _roles(entry, honest))
        steps.append(f"If {roles}: they say {', '.join(str(one).lower() for one in held)}.")
        if held == list(honest):
            break
    return " ".join(steps) if len(steps) <= _TRIED else ""


def _content(entry: Entry) -> Content:
    """What each says, in any order of the people and of what is symmetric, whatever the names and words. Not by
    truth table: two people have 40 of those."""
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


def _sort(entry: Entry) -> str:
    return "".join("TL"[not honest] for honest in entry["metadata"]["solution"])


def _as_if(honest: bool) -> Callable[[Entry], str]:
    words = "a_knight" if honest else "a_knave"

    def answer(entry: Entry) -> str:
        metadata = entry["metadata"]
        return ", ".join(f"{name} is {metadata['knight_knave_terms'][words]}" for name in metadata["names"])

    return answer


FAMILY = Family(
    name="knights_knaves",
    title="Knights and knaves",
    kind=FamilyKind.LOGIC,
    levels=(
        dict(n_people=2, depth_constraint=2, width_constraint=3),
        dict(n_people=2, depth_constraint=3, width_constraint=2),
        dict(n_people=3, depth_constraint=3, width_constraint=2),
        dict(n_people=4, depth_constraint=3, width_constraint=2),
    ),
    content=_content,
    wording=_wording,
    sort=_sort,
    shortcuts={"all honest": _as_if(True), "all liars": _as_if(False)},
    score=_score,
    sound=_sound,
    work=_work,
    held_out_share=4,  # two people who say one thing each, names apart, make a hundred questions
    guess_rate=0.3,  # names apart: two people have four answers
    thinned=({"TT": 0.89, "LT": 0.93, "TL": 0.9, "LL": 0.92}, {"TT": 0.6, "LT": 0.79, "TL": 0.81}),
)
