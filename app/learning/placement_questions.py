"""Chooses the questions of a placement, which a model is asked before it trains, and decides when training can
begin.

Each family gets one question, families with short questions first, and five more if it got a right answer.
As soon as some families of a batch do well beyond chance, their right answers are gathered for a lesson and
training begins; the others, and what one question missed, are asked between rounds. The next questions depend
only on the results so far (`next_questions`), so an interrupted placement resumes where it stopped without
repeating a question. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from app.learning.placement import (
    LESSON_ANSWERS,
    MAX_STARTING_FAMILIES,
    RARE_LESSON_ANSWERS,
    FamilyTrial,
    OwnExample,
    Placement,
    Rewards,
    add_results,
    can_begin,
    choose_families,
    first_lesson_answers,
    short_of_answers,
    too_easy,
)
from app.sapo.families import FAMILIES

FIRST_QUESTIONS, PROMISING_QUESTIONS = 1, 6
"""Questions that every family gets, and the total for a family that got a right answer to one of these."""
QUESTIONS_PER_CALL = 16
"""Maximum questions per call; results are saved after each call. As many as fill a batch of answers."""
BEGIN_SHARE = 0.2
"""Share of right answers beyond chance from which a family can begin before all others were tried. One more
batch of questions costs less than gathering a lesson in a family that is rarely right."""
LESSON_QUESTIONS, PATIENT_QUESTIONS, MAX_QUESTIONS = 8, 72, 160
"""LESSON_QUESTIONS: questions of a family per call while a lesson is gathered. PATIENT_QUESTIONS: total of
all these families after which RARE_LESSON_ANSWERS right answers suffice instead of LESSON_ANSWERS.
MAX_QUESTIONS: total after which gathering stops."""


class FamilyQuestions(NamedTuple):
    """A request for `questions` questions of a family at one level, starting at number `first`."""

    family: str
    level: int
    first: int
    questions: int


def next_questions(found: Placement) -> tuple[FamilyQuestions, ...]:
    """Returns the questions to ask next in a placement, about QUESTIONS_PER_CALL in all; empty when it is over.

    >>> from app.sapo.asking import BRIEF
    >>> tried = [
    ...     FamilyTrial(family=family, level=0, questions=questions, any=any, answers=8, solved=any)
    ...     for family, questions, any in (("a", 2, 0), ("b", 2, 1), ("c", 0, 0), ("d", 0, 0))
    ... ]
    >>> found = Placement(way=BRIEF, families={}, tried=tuple(tried), in_progress=True)
    >>> [tuple(one) for one in next_questions(found)]
    [('b', 0, 2, 4)]
    >>> found = Placement(way=BRIEF, families={}, tried=(tried[0], *tried[2:]), in_progress=True)
    >>> [tuple(one) for one in next_questions(found)]
    [('c', 0, 0, 1), ('d', 0, 0, 1)]
    """
    promising = [
        FamilyQuestions(one.family, one.level, one.questions, PROMISING_QUESTIONS - one.questions)
        for one in found.tried
        if one.any and one.questions < PROMISING_QUESTIONS
    ]
    climbing = [
        FamilyQuestions(one.family, one.level + 1, 0, FIRST_QUESTIONS)
        for one in one_trial_per_family(found.tried)
        if too_easy(one) and one.level + 1 < len(FAMILIES[one.family].levels)
        if not any((other.family, other.level) == (one.family, one.level + 1) for other in found.tried)
    ]
    untried = [
        FamilyQuestions(one.family, one.level, 0, FIRST_QUESTIONS)
        for one in found.tried
        if one.family in found.untried
    ]
    begun = starting_families(found)
    wanted = promising or climbing or (_gathered(found, begun) if begun or not untried else untried)
    return tuple(wanted[: max(1, QUESTIONS_PER_CALL // wanted[0].questions)]) if wanted else ()


def starting_families(found: Placement) -> dict[str, int]:
    """Returns the families, with levels, that training could start with now. While some are untried, only those
    that do well beyond chance (BEGIN_SHARE) count; empty if none does."""
    able_ones = [one for one in one_trial_per_family(found.tried) if can_begin(one)]
    if found.untried:
        able_ones = [one for one in able_ones if one.merit[0] >= BEGIN_SHARE]
    return choose_families(able_ones)


def one_trial_per_family(tried: Iterable[FamilyTrial]) -> tuple[FamilyTrial, ...]:
    """Returns one trial per family: of the highest level at which the model can begin, else of the lowest level
    tried.

    >>> tried = [FamilyTrial(family="gcd", level=n, questions=2, any=any) for n, any in enumerate((2, 1, 0))]
    >>> [[one.level for one in one_trial_per_family(some)] for some in (tried, tried[2:])]
    [[1], [2]]
    """
    found: dict[str, FamilyTrial] = {}
    for one in sorted(tried, key=lambda one: one.level):
        if one.family not in found or can_begin(one):
            found[one.family] = one
    return tuple(found[family] for family in dict.fromkeys(one.family for one in tried))


def _gathered(found: Placement, begun: Mapping[str, int]) -> list[FamilyQuestions]:
    """Returns more questions of the families in `begun`; empty once a lesson has enough right answers."""
    if not found.way.examples:
        return []
    own = [one for one in one_trial_per_family(found.tried) if one.family in begun]
    asked = sum(one.questions for one in own)
    short = short_of_answers(
        found.right_answers, tuple(begun), RARE_LESSON_ANSWERS if asked >= PATIENT_QUESTIONS else LESSON_ANSWERS
    )
    if asked >= MAX_QUESTIONS:
        return []
    more = [one for one in own if one.family in short]
    more.sort(key=lambda one: one.questions)
    return [FamilyQuestions(one.family, one.level, one.questions, LESSON_QUESTIONS) for one in more]


def with_results(
    found: Placement, answered: Iterable[tuple[FamilyQuestions, Sequence[Rewards]]], right: Iterable[OwnExample]
) -> Placement:
    """Returns a placement updated with answered questions: for each, the rewards of its answers, and the
    rewards of the same answers scored against another question. `right`: the new right answers for first
    lesson."""
    tried = {(one.family, one.level): one for one in found.tried}
    for asked, rewards_P in answered:
        at = (asked.family, asked.level)
        own_PG, elsewhere_PG = [one[0] for one in rewards_P], [one[1] for one in rewards_P if one[1]]
        # A question that could not be made counts as one without a right answer.
        own_PG += [()] * (asked.questions - len(own_PG))
        before = tried.get(at, FamilyTrial(family=asked.family, level=asked.level))
        tried[at] = add_results(before, own_PG, elsewhere_PG)
    return msgspec.structs.replace(
        found, tried=tuple(tried.values()), right_answers=(*found.right_answers, *right)
    )


def finish(found: Placement, *, anyway: bool = False) -> Placement:
    """Returns the result of a placement. If the owner cut it short (`anyway`) and no family is good enough,
    training begins with the first families of the list."""
    tried = one_trial_per_family(found.tried)
    begun = choose_families(tried) if anyway else starting_families(found)
    if anyway and not begun:
        begun = {one.family: one.level for one in tried[:MAX_STARTING_FAMILIES]}
    taught = first_lesson_answers(found.right_answers, begun) if found.way.examples else ()
    return msgspec.structs.replace(found, families=begun, tried=tried, right_answers=taught, in_progress=False)
