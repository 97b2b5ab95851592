"""Adds rows to a question set and corrects answers in it, so that a skill goes on from where it is.

The amended set keeps its mark, and every row its side of the split: what was trained on is never asked as a
held-out row. The side of a new row is decided by its content alone, unless it says which one. Rows keep their
places, and new ones come last, so that the training rows aside (app.learning.skill_lesson.split_rows) stay
aside."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.sapo.families.family import Content
from app.sapo.seeds import hashed_seed
from app.sapo.sets import checks
from app.sapo.sets.checks import Check, Rule
from app.sapo.sets.question_set import (
    HELD_OUT_SHARE,
    QuestionSet,
    Row,
    SetError,
    check,
    held_out,
    near_duplicate_key,
)
from app.sapo.sets.tables import question_key

_HASHES = 2**52
"""Number of values of `hashed_seed`."""


class Amended(msgspec.Struct, frozen=True, kw_only=True):
    """A set with more rows. `new` rows were added, `new_held_out` of them
    kept aside for measuring; `corrected` ones
    have another answer than before; `unchanged` ones were there with the same answer."""

    made: QuestionSet
    new: int = 0
    new_held_out: int = 0
    corrected: int = 0
    unchanged: int = 0


def amended(made: QuestionSet, rows: Sequence[Row]) -> Amended:
    """Returns the set with the rows; one whose question it has gives that question its answer. Raises SetError
    if the set can't be used with them.

    >>> mails = QuestionSet(name="Mails", rule=checks.Rule(), rows=tuple(
    ...     Row(question=f"Mail {n}", answer="ham") for n in range(10)))
    >>> found = amended(mails, [Row(question="mail 3", answer="spam"), Row(question="Win!", answer="spam")])
    >>> found.new, found.corrected, found.made.rows[3].answer, found.made.mark == mails.mark
    (1, 1, 'spam', True)
    """
    if made.templates:
        raise SetError(f"{made.name} is made from templates, not from rows. Add a set of its own.")
    held = held_out(made) or frozenset()

    def content(question: str) -> Content:
        return near_duplicate_key(question, made.format)

    sides = {one: one in held for one in (content(row.question) for row in made.rows)}
    known = {question_key(row.question): place for place, row in enumerate(made.rows)}
    changed = [msgspec.structs.replace(row, held_out=sides[content(row.question)]) for row in made.rows]
    new = corrected = unchanged = aside = 0
    for row in rows:
        work = row.work if made.marked else ""
        place = known.setdefault(question_key(row.question), len(changed))
        if place == len(changed):
            side = row.held_out if row.held_out is not None else _side(content(row.question))
            side = sides.setdefault(content(row.question), side)
            more = Row(question=row.question, answer=row.answer, work=work, held_out=side, amended=True)
            changed.append(more)
            new, aside = new + 1, aside + side
        elif _same(made.rule, changed[place].answer, row.answer):
            unchanged += 1
        else:
            changed[place] = msgspec.structs.replace(changed[place], answer=row.answer, work=work, amended=True)
            corrected += 1
    if not new and not corrected:
        return Amended(made=made, unchanged=unchanged)
    rule = made.rule
    if rule.check in (Check.CHOICE, Check.TRUE_FALSE):  # the answers to choose from
        rule = checks.complete_rule(rule, [row.answer for row in changed])
    grown = msgspec.structs.replace(made, rows=tuple(changed), rule=rule, began=made.mark)
    check(grown)
    return Amended(made=grown, new=new, new_held_out=aside, corrected=corrected, unchanged=unchanged)


def _side(content: Content) -> bool:
    """Whether a new question is held out: one in HELD_OUT_SHARE is, by its content."""
    drawn = hashed_seed("held out", msgspec.json.encode(content))
    return drawn < _HASHES // HELD_OUT_SHARE


def _same(rule: Rule, answer: str, other: str) -> bool:
    return checks.normalise(rule, answer) == checks.normalise(rule, other)
