"""The first look: which questions a model is asked before it learns, and when it has seen enough to begin.

Two questions of each family, those with short ones first, and four more where one of them got a right answer.
As soon as one wave of families holds some that answer well beyond chance, right answers of these are gathered
for a lesson and learning begins; the other families are looked at between rounds. What is asked next follows
from what is known (`next_questions`), so a look that was interrupted continues where it stood, and asks nothing
again. Pure functions.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from app.learning.placement import (
    ENOUGH,
    MOST_FAMILIES,
    OWN_ROWS,
    SOME,
    FamilyTrial,
    OwnExample,
    Placement,
    Rewards,
    able,
    added,
    families,
    lesson,
    short_of,
    too_easy,
)
from app.sapo.families import FAMILIES
from app.sapo.sets.question_set import is_own

FIRST, THEN = 2, 6
"""Questions that every family gets, and in all one with a right answer to its first ones."""
AT_ONCE = 16
"""Questions asked in one call, after which their results are saved: the first ones of eight families, or as
many as fill a batch of answers."""
BEGIN_SHARE = 0.2
"""Share of right answers beyond chance from which a family begins before all others were looked at. One more
wave of questions costs less than gathering a lesson in a family that is seldom right."""
MORE, PATIENT_QUESTIONS, MOST_QUESTIONS = 8, 72, 160
"""Questions of a family between two looks at what has been gathered for a lesson, and of all its families."""


class FamilyQuestions(NamedTuple):
    """`questions` questions of a family at one level, numbered from `first`."""

    family: str
    level: int
    first: int
    questions: int


def next_questions(found: Placement) -> tuple[FamilyQuestions, ...]:
    """What a first look asks next, at most AT_ONCE questions; empty when it is over.

    >>> from app.sapo.asking import BRIEF
    >>> tried = [
    ...     FamilyTrial(family=family, level=0, questions=questions, any=any, answers=8, solved=any)
    ...     for family, questions, any in (("a", 2, 0), ("b", 2, 1), ("c", 0, 0), ("d", 0, 0))
    ... ]
    >>> found = Placement(way=BRIEF, families={}, tried=tuple(tried), looking=True)
    >>> [tuple(one) for one in next_questions(found)]
    [('b', 0, 2, 4)]
    >>> found = Placement(way=BRIEF, families={}, tried=(tried[0], *tried[2:]), looking=True)
    >>> [tuple(one) for one in next_questions(found)]
    [('c', 0, 0, 2), ('d', 0, 0, 2)]
    """
    promising = [
        FamilyQuestions(one.family, one.level, one.questions, THEN - one.questions)
        for one in found.tried
        if one.any and one.questions < THEN
    ]
    climbing = [
        FamilyQuestions(one.family, one.level + 1, 0, FIRST)
        for one in reached(found.tried)
        if too_easy(one) and one.level + 1 < len(FAMILIES[one.family].levels)
        if not any((other.family, other.level) == (one.family, one.level + 1) for other in found.tried)
    ]
    untried = [
        FamilyQuestions(one.family, one.level, 0, FIRST) for one in found.tried if one.family in found.unasked
    ]
    begun = beginning(found)
    wanted = promising or climbing or (_gathered(found, begun) if begun or not untried else untried)
    return tuple(wanted[: max(1, AT_ONCE // wanted[0].questions)]) if wanted else ()


def ordered(found: Placement, solved: Container[str]) -> Placement:
    """The look with those of the families that were not looked at first that peers have `solved`, so that a
    newcomer begins where others can help it; the owner's own sets stay before them."""
    turns = sorted(found.tried, key=lambda one: (not is_own(one.family), one.family not in solved))
    queue = iter([one for one in turns if not one.questions])
    return msgspec.structs.replace(
        found, tried=tuple(one if one.questions else next(queue) for one in found.tried)
    )


def beginning(found: Placement) -> dict[str, int]:
    """The families that a first look can end with, and their levels. Until all families were looked at, only
    those that do well."""
    able_ones = [one for one in reached(found.tried) if able(one)]
    if found.unasked:
        well = [one for one in able_ones if one.merit[0] >= BEGIN_SHARE]
        able_ones = [one for one in able_ones if one in well or is_own(one.family)] if well else []
    return families(able_ones)


def reached(tried: Iterable[FamilyTrial]) -> tuple[FamilyTrial, ...]:
    """One entry per family: the highest level that the model can begin with, else the lowest.

    >>> tried = [FamilyTrial(family="gcd", level=n, questions=2, any=any) for n, any in enumerate((2, 1, 0))]
    >>> [one.level for one in reached(tried)], [one.level for one in reached(tried[2:])]
    ([1], [2])
    """
    found: dict[str, FamilyTrial] = {}
    for one in sorted(tried, key=lambda one: one.level):
        if one.family not in found or able(one):
            found[one.family] = one
    return tuple(found[family] for family in dict.fromkeys(one.family for one in tried))


def _gathered(found: Placement, begun: Mapping[str, int]) -> list[FamilyQuestions]:
    """More questions of the families it begins with, until a lesson has enough right answers."""
    if not found.way.examples:
        return []
    own = [one for one in reached(found.tried) if one.family in begun]
    asked = sum(one.questions for one in own)
    short = short_of(found.lesson, tuple(begun), SOME if asked >= PATIENT_QUESTIONS else ENOUGH)
    if asked >= MOST_QUESTIONS:
        return []
    more = [one for one in own if one.family in short]
    more.sort(key=lambda one: one.questions)
    return [FamilyQuestions(one.family, one.level, one.questions, MORE) for one in more]


def asked_more(
    found: Placement, answered: Iterable[tuple[FamilyQuestions, Sequence[Rewards]]], right: Iterable[OwnExample]
) -> Placement:
    """A first look after questions were answered: for each, the rewards of its answers, and what the same
    answers earn at another question."""
    tried = {(one.family, one.level): one for one in found.tried}
    for asked, rewards_P in answered:
        at = (asked.family, asked.level)
        own_PG, elsewhere_PG = [one[0] for one in rewards_P], [one[1] for one in rewards_P if one[1]]
        # A question that could not be made counts as one without a right answer.
        own_PG += [()] * (asked.questions - len(own_PG))
        before = tried.get(at, FamilyTrial(family=asked.family, level=asked.level))
        tried[at] = added(before, own_PG, elsewhere_PG)
    return msgspec.structs.replace(found, tried=tuple(tried.values()), lesson=(*found.lesson, *right))


def ended(found: Placement, *, anyway: bool = False) -> Placement:
    """The result of a first look. If the owner ended it (`anyway`), it begins with what is known, or with the
    very first families if nothing is."""
    tried = reached(found.tried)
    begun = families(tried) if anyway else beginning(found)
    if anyway and not begun:
        begun = {one.family: one.level for one in tried[:MOST_FAMILIES]}
    most = OWN_ROWS if any(map(is_own, begun)) else ENOUGH
    taught = lesson(found.lesson, begun, most) if found.way.examples else ()
    return msgspec.structs.replace(found, families=begun, tried=tried, lesson=taught, looking=False)
