"""Placement: finds the prompt style ("way of asking") and the families with which a model can begin.

Each question is answered a few times, and a family can begin
if at least one question in ten has a right answer among them. Other families, and untried ones, are asked
one question in a round and become active with its right answers. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from app.sapo.asking import BRIEF, TAGGED, Way
from app.sapo.questions import Coordinates
from app.sapo.reading.expression import has_false_equation

ANSWERS_PER_QUESTION = 4
"""Answers sampled per question. More questions tell more about a family, and give a lesson more choice, than
more answers to one question."""
MIN_SHARE_TO_BEGIN = 0.1
"""A model can begin with a family if at least this share of its questions has a right answer among
ANSWERS_PER_QUESTION."""
OPENS_RIGHT = 2
"""Right answers to the one question of a waiting family in a round with which it becomes active: with one in
eight, most of its next groups would be all wrong."""
TAUGHT_TRIED, TAUGHT_TURNS = 2, 3
"""Waiting families that peers' answers teach and that a round asks a question each; one round of TAUGHT_TURNS
also asks one that nobody teaches."""
MAX_ACTIVE, MAX_UNTAUGHT = 16, 8
"""Maximum active families, and up to how many families that nobody teaches are tried: a round has about eight
questions."""
TOO_EASY_SHARE = 0.9
"""Share of right answers from which the next higher level is tried."""
MAX_STARTING_FAMILIES = 3
"""Maximum number of families to begin with. More would spread a lesson and a round's few questions too thin;
others join later."""
FOLLOWING_SHARE = 0.5
"""A model counts as following the prompt style if this share of its answers has the requested mark."""
LESSON_ANSWERS, RARE_LESSON_ANSWERS = 40, 24
"""Right answers gathered for a lesson, and the smaller number that suffices where they are rare."""
MIN_LESSON_ANSWERS = 8
"""If fewer right answers with correct work than this were found, those with wrong work are taught too: they
still teach the form."""


Rewards = tuple[Sequence[int], Sequence[int]]
"""Rewards of a question's answers, and rewards of the same answers scored against another question (empty if
they were not)."""


class FamilyTrial(msgspec.Struct, frozen=True, kw_only=True):
    """Results of one family at one level: `questions` asked, `any` of them with a right answer, and counts of
    answers."""

    family: str
    level: int
    questions: int = 0
    any: int = 0
    answers: int = 0
    solved: int = 0
    crossed: int = 0
    """Number of answers that were also scored against another question of the family; `lucky` of them were
    right there. It measures what this model earns by guessing."""
    lucky: int = 0

    @property
    def any_share(self) -> float:
        return self.any / self.questions if self.questions else 0.0

    @property
    def merit(self) -> tuple[float, float]:
        """Sort key of families, higher is better: the share of right answers minus what guessing earns, then
        the share of questions with a right answer."""
        share = self.solved / self.answers if self.answers else 0.0
        by_chance = self.lucky / self.crossed if self.crossed else 0.0
        return share - by_chance, self.any_share


class OwnExample(msgspec.Struct, frozen=True, kw_only=True):
    """One of the model's own right answers, with its work. It was given with examples in the prompt and is
    taught without them. `logprob`: mean log-probability of its tokens (nats)."""

    coordinates: Coordinates
    question: str
    completion: str
    logprob: float


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """The families with which a model begins, and its prompt style. `right_answers`: what the first lesson
    teaches, empty if the model needs none."""

    way: Way
    families: dict[str, int]
    """The families it begins with, and their levels. The curve is always measured on these."""
    tried: tuple[FamilyTrial, ...] = ()
    right_answers: tuple[OwnExample, ...] = msgspec.field(default=(), name="lesson")
    seconds: float = 0.0
    joined: dict[str, int] = {}
    """Families that joined later, and the levels at which they did."""
    in_progress: bool = msgspec.field(default=False, name="looking")
    """Whether it is still in progress: `families` are not chosen yet, `right_answers` has all
    of them so far, and `tried` has one entry for each level of a family, in the order in which families are
    tried."""

    @property
    def active(self) -> dict[str, int]:
        """The active families with their levels: those it began with and those that joined."""
        return self.families | self.joined

    @property
    def _others(self) -> list[FamilyTrial]:
        left = [one for one in self.tried if one.family not in self.active]
        return sorted(left, key=lambda one: (*one.merit, one.family), reverse=True)

    @property
    def later(self) -> tuple[str, ...]:
        """Families that the model could begin with but that are not active yet, most promising first."""
        return tuple(one.family for one in self._others if can_begin(one))

    @property
    def untried(self) -> tuple[str, ...]:
        """Untried families, in the order in which they will be tried."""
        return tuple(one.family for one in self.tried if not one.questions and one.family not in self.active)

    @property
    def families_tried(self) -> int:
        """Number of families that were asked at least one question."""
        return len({one.family for one in self.tried if one.questions})

    @property
    def waiting(self) -> tuple[str, ...]:
        """Names of the families that are still too hard."""
        return tuple(sorted(one.family for one in self._others if one.questions and not can_begin(one)))


def add_results(
    before: FamilyTrial, rewards_PG: Iterable[Sequence[int]], elsewhere_PG: Iterable[Sequence[int]] = ()
) -> FamilyTrial:
    """Returns a family's trial with the results of more questions. `elsewhere_PG`: rewards of the same answers
    scored against another question.

    >>> add_results(FamilyTrial(family="gcd", level=0), [(0, 1, 1), (0, 1, 0)], [(0, 0, 0), (0, 1, 0)]).merit
    (0.33333333333333337, 1.0)
    """
    rewards_PG, elsewhere_PG = list(rewards_PG), list(elsewhere_PG)
    return msgspec.structs.replace(
        before,
        questions=before.questions + len(rewards_PG),
        any=before.any + sum(map(any, rewards_PG)),
        answers=before.answers + sum(map(len, rewards_PG)),
        solved=before.solved + sum(map(sum, rewards_PG)),
        crossed=before.crossed + sum(map(len, elsewhere_PG)),
        lucky=before.lucky + sum(map(sum, elsewhere_PG)),
    )


def too_easy(one: FamilyTrial) -> bool:
    return bool(one.answers) and one.solved >= TOO_EASY_SHARE * one.answers


def can_begin(one: FamilyTrial) -> bool:
    """Whether a model can begin with a family."""
    return bool(one.any) and one.any_share >= MIN_SHARE_TO_BEGIN


def choose_families(tried: Sequence[FamilyTrial]) -> dict[str, int]:
    """Returns the families that a model can begin with, and their levels: the best, at most
    MAX_STARTING_FAMILIES."""
    ranked = sorted(filter(can_begin, tried), key=lambda one: one.merit, reverse=True)
    return {one.family: one.level for one in ranked[:MAX_STARTING_FAMILIES]}


def families_to_try(found: Placement, taught: Mapping[str, float], round: int) -> list[str]:
    """Returns the waiting families that `round` asks one question each: TAUGHT_TRIED of those that peers'
    answers teach, with their distances from a right answer (`taught`), the nearer the more often; and every
    TAUGHT_TURNS rounds, or always if none are taught, another one in rotation, untried ones first.

    >>> names = enumerate("abcde")
    >>> tried = tuple(FamilyTrial(family=name, level=0, questions=9 - n, any=n) for n, name in names)
    >>> found = Placement(way=BRIEF, families={"e": 0}, tried=tried)
    >>> found.later, found.waiting
    (('d', 'c', 'b'), ('a',))
    >>> [families_to_try(found, {"a": 6.0, "b": 9.0, "c": 8.0}, round) for round in (2, 3)]
    [['a', 'c', 'd'], ['a', 'c']]
    >>> [families_to_try(found, {}, round) for round in (0, 1)]
    [['d'], ['c']]
    """
    active = len(found.active)
    waiting = [family for family in taught if family not in found.active] if active < MAX_ACTIVE else []
    others = [one for one in found.untried or (*found.later, *found.waiting) if one not in waiting]
    if not found.families or active >= MAX_UNTAUGHT or (waiting and round % TAUGHT_TURNS < TAUGHT_TURNS - 1):
        others = []
    asked = {one.family: one.questions for one in found.tried}
    chosen = sorted(waiting, key=lambda family: (1 + asked.get(family, 0)) * taught[family])
    chosen = chosen[: min(TAUGHT_TRIED, MAX_ACTIVE - active)]
    if others:
        chosen.append(others[(round // TAUGHT_TURNS if waiting else round) % len(others)])
    return chosen


def opens(rewards_G: Sequence[int], elsewhere_G: Sequence[int]) -> bool:
    """Whether a waiting family becomes active: OPENS_RIGHT right answers more to its question than the same
    answers earn at another one (`elsewhere_G`), where a constant answer earns as much."""
    return sum(rewards_G) - sum(elsewhere_G) >= OPENS_RIGHT


def after_trial(
    found: Placement, family: str, level: int, rewards_G: Sequence[int], elsewhere_G: Sequence[int]
) -> Placement:
    """Returns the placement after a round's question of a waiting family. `elsewhere_G`: rewards of the same
    answers scored against another question of the family.

    >>> found = Placement(way=BRIEF, families={"a": 0}, tried=(FamilyTrial(family="b", level=0),))
    >>> after_trial(found, "b", 0, (1, 1, 0, 0), (0, 0, 0, 0)).joined
    {'b': 0}
    >>> [after_trial(found, "b", 0, *some).joined for some in (((1, 1, 0), (0, 1, 1)), ((1,), ()))]
    [{}, {}]
    """
    tried = {one.family: one for one in found.tried}
    before = tried.get(family, FamilyTrial(family=family, level=level))
    if before.level != level:
        before = FamilyTrial(family=family, level=level)
    tried[family] = add_results(before, [rewards_G], [elsewhere_G] if elsewhere_G else [])
    opened = {family: level} if opens(rewards_G, elsewhere_G) else {}
    return msgspec.structs.replace(found, joined=found.joined | opened, tried=tuple(tried.values()))


def without_hopeless(found: Placement, hopeless: Iterable[str]) -> Placement:
    """Returns the placement in which joined families that brought nothing wait again."""
    out = {*hopeless}
    return msgspec.structs.replace(
        found, joined={family: level for family, level in found.joined.items() if family not in out}
    )


def way_for(marked: Sequence[bool]) -> Way:
    """Chooses the prompt style of a model. `marked`: whether each of its answers to a few questions, asked in
    the longer style without examples, had the requested mark.

    >>> way_for([True, True, False]).name, way_for([False] * 8).name
    ('tagged', 'brief')
    """
    return TAGGED if marked and sum(marked) >= FOLLOWING_SHARE * len(marked) else BRIEF


def first_lesson_answers(
    found: Sequence[OwnExample], placed: Iterable[str], most: int = LESSON_ANSWERS
) -> tuple[OwnExample, ...]:
    """Selects the answers of the first lesson: the model's own right answers in the families it begins with,
    alternating between families so that none dominates. For every question it takes the likeliest answer,
    preferring correct equations: a small model at temperature 1 is often right by chance, with nonsense as its
    work."""
    queues: dict[str, list[OwnExample]] = {family: [] for family in placed}
    seen: set[str] = set()
    for one in sorted(found, key=lambda one: (has_false_equation(one.completion), -one.logprob)):
        if one.coordinates.family in queues and one.question not in seen:
            seen.add(one.question)
            queues[one.coordinates.family].append(one)
    dealt = [one for place in range(most) for queue in queues.values() for one in queue[place : place + 1]]
    true = [one for one in dealt if not has_false_equation(one.completion)]
    return tuple((true if len(true) >= MIN_LESSON_ANSWERS else dealt)[:most])


def short_of_answers(
    found: Sequence[OwnExample], placed: Sequence[str], enough: int = LESSON_ANSWERS
) -> tuple[str, ...]:
    """Returns the `placed` families with fewer than `enough / len(placed)` answers in `found`."""
    return tuple(
        family
        for family, count in count_solved_questions(found, placed).items()
        if count * len(placed) < enough
    )


def count_solved_questions(found: Sequence[OwnExample], placed: Sequence[str]) -> dict[str, int]:
    """Returns how many questions of each `placed` family have a right answer; answers with false equations do
    not count."""
    known = {family: set[str]() for family in placed}
    for one in found:
        if one.coordinates.family in known and not has_false_equation(one.completion):
            known[one.coordinates.family].add(one.question)
    return {family: len(texts) for family, texts in known.items()}
