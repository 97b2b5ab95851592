"""Imitation: which right answers of peers a round teaches, in families that the model cannot do yet.

SAPO weighs peers' groups in families that the model has right answers in itself; in others there is nothing to
weigh them against. Their groups wait (`app.swarm.intake.buffer`), and every round has a budget of supervised
rows for them, in the same optimiser steps' sequence as its own groups, so that what is practised keeps what is
learned (blocks of such rows were half forgotten after twelve rounds, LOG.md).

Every answer is an examination before it is a lesson: its nats before the step that teaches it come with the
forward pass (prequential evaluation; Dawid 1984), and e to the power of minus these is the probability that the
model writes it. The budget is shared in inverse proportion to these nats, so that most of it goes to families
that are near a right answer, and none is missed for ever. Neither all families alike nor a block of answers for
one after the other worked: too few for any, and what was not rehearsed was forgotten in five rounds (LOG.md).

`app.learning.teachable` decides what is taught of an answer; those taught least often come first, then those of
authors with standing, then those whose work has the question's numbers, and one answer per question before any
second one.

Left out: the source's log-probabilities (a peer can invent them), and wrong answers, whose weight needs a
policy that could have written them. Pure functions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from random import Random

import msgspec

from app.learning.evidence import Evidence
from app.learning.round_weights import OwnTokens
from app.learning.teachable import JudgedAnswers, numbers, teachable
from app.sapo.asking import shows_work
from app.sapo.groups import GroupRecord
from engines.contract import TokenSequence

ROWS_PER_QUESTION = 10
"""Peers' answers in a round for each of its own questions, at most: about one and a half times their cost."""
PER_STEP, RATE = 4, 6e-4
"""Answers of an optimiser step, and the learning rate of a round's first: that of RL steps would teach them too
slowly. It falls to zero with the round's last, so that the round ends near the mean of its steps (LOG.md)."""
REHEARSED = 8
"""Own right answers among them: without rehearsal at the same rate a family at 98 % was at 12 % after one round
of peers' answers (LOG.md)."""
PATIENCE = 64
"""Answers that count as one nat more, so that a family that stays near and learns nothing gives way."""
MIN_ANSWERS, MAX_ANSWERS = 8, 48
"""Minimum answers of a family and level, all taught in the round that teaches the first; and the maximum of a
family in a round, at most half of them by one author without standing."""
_RECENT = 0.6  # what is left of old observations after a round in which the family was taught


class PeerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A peer's right answer that may be taught. `id` is the group's, `peer` the author's name, `key` its public
    key; `fresh` if no answer of this group was taught before."""

    id: str
    peer: str
    key: str
    question: str
    completion: str
    fresh: bool = True


class FamilyAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of one family at one level that may be taught, the best first."""

    family: str
    level: int
    answers: tuple[PeerAnswer, ...]


class FamilyTaught(msgspec.Struct, frozen=True, kw_only=True):
    """What was taught in a family, and what it brought. `nats`: of answers before they were taught, in the last
    rounds. `answers`: how many were taught in all, by author's name; `shown`: question and answer of one."""

    level: int
    nats: Evidence = Evidence()
    answers: dict[str, int] = {}
    shown: tuple[str, str] = ("", "")

    @property
    def count(self) -> int:
        """How many answers were taught."""
        return sum(self.answers.values())

    @property
    def distance(self) -> float:
        """How far it is from a right answer, in nats; those that were taught a lot count as further."""
        return self.nats.mean + self.count / PATIENCE

    @property
    def authors(self) -> tuple[str, ...]:
        """Names of those whose answers were taught, those with most answers first."""
        return tuple(name for name, _ in Counter(self.answers).most_common())


def families_with_answers(
    groups: Iterable[GroupRecord],
    able: Callable[[str, int], bool],
    standing: Callable[[str], bool],
    taught: Mapping[str, int],
    judged: dict[str, JudgedAnswers],
) -> list[FamilyAnswers]:
    """Returns, for each family that may be taught (`able`, by family and level), the answers of its easiest
    level with enough of them. `standing`: whether an author, by key, has standing. `taught`: how often each
    group was, by id. `judged`: what is known of these groups from the last time; kept up to date."""
    groups = list(groups)
    for gone in judged.keys() - {group.id for group in groups}:
        del judged[gone]
    places: dict[tuple[int, str], list[GroupRecord]] = {}
    for group in groups:
        if able(group.coordinates.family, group.coordinates.level):
            places.setdefault((group.coordinates.level, group.coordinates.family), []).append(group)
    found: dict[str, FamilyAnswers] = {}
    for (level, family), some in sorted(places.items(), key=lambda one: one[0]):
        if (
            family not in found
            and len(answers := choose_answers(some, standing, taught, judged)) >= MIN_ANSWERS
        ):
            found[family] = FamilyAnswers(family=family, level=level, answers=answers)
    return list(found.values())


def deal_rows(
    rows: int, offered: Sequence[FamilyAnswers], before: Mapping[str, FamilyTaught], draws: Random
) -> dict[str, int]:
    """Returns how many of a round's `rows` each family gets: MIN_ANSWERS for each that was never taught; the
    others share the rest in inverse proportion to their distances.

    >>> answer = PeerAnswer(id="1", peer="Ann", key="a", question="2+2?", completion="#4")
    >>> gcd, lcm, bits = (
    ...     FamilyAnswers(family=family, level=0, answers=(answer,) * 48) for family in ("gcd", "lcm", "bits")
    ... )
    >>> near, far = (
    ...     FamilyTaught(level=0, nats=Evidence(n=20.0, mean=mean), answers={"Ann": 64}) for mean in (3.0, 30.0)
    ... )
    >>> deal_rows(60, [gcd, lcm, bits], {"gcd": near, "lcm": far}, Random(1))
    {'bits': 8, 'gcd': 46, 'lcm': 6}
    """
    some = [one for one in offered if one.answers]
    known = [one for one in some if one.family in before and before[one.family].nats.n]
    new = [one for one in some if one not in known]
    dealt = Counter[str]()

    def deal(one: FamilyAnswers, share: float) -> None:
        left = min(len(one.answers) - dealt[one.family], rows - dealt.total())
        dealt[one.family] += max(0, min(left, math.floor(share + draws.random())))

    for one in draws.sample(new, len(new)):
        deal(one, MIN_ANSWERS)
    weights = [(1 / before[one.family].distance, one) for one in known] or [(1.0, one) for one in new]
    weights.sort(key=lambda each: -each[0])
    for place, (weight, one) in enumerate(weights):
        deal(one, (rows - dealt.total()) * weight / sum(weight for weight, _ in weights[place:]))
    return dict(+dealt)


def rehearsed(own_P: Sequence[OwnTokens]) -> list[TokenSequence]:
    """Returns at most REHEARSED right answers of the own groups, of as many groups as can be."""
    right_P = [
        [
            TokenSequence(prompt_T=one.prompt_T, completion_T=completion.tokens_T)
            for completion, right in zip(one.completions_G, one.scored.rewards_G, strict=True)
            if right and completion.finished
        ]
        for one in own_P
    ]
    return [one for some in zip_longest(*right_P) for one in some if one is not None][:REHEARSED]


def after_teaching(
    before: FamilyTaught | None, level: int, answers: Sequence[PeerAnswer], nats: Sequence[float]
) -> FamilyTaught:
    """Returns what is known of a family after a round that taught these `answers`. `nats` of each before the
    step that taught it. Only answers of groups that were never taught before tell anything.

    >>> one = PeerAnswer(id="1", peer="Ann", key="a", question="2+2?", completion="#4")
    >>> first = after_teaching(None, 0, [one] * 8, [12.0] * 8)
    >>> later = after_teaching(first, 0, [one] * 8, [8.0] * 8)
    >>> later.nats.mean, later.distance, later.authors
    (9.5, 9.75, ('Ann',))
    """
    now = before if before is not None and before.level == level else FamilyTaught(level=level)
    fresh = Evidence.of(found for answer, found in zip(answers, nats, strict=True) if answer.fresh)
    counted = Counter(now.answers) + Counter(answer.peer for answer in answers)
    return msgspec.structs.replace(
        now,
        nats=now.nats.faded(_RECENT) + fresh if fresh.n else now.nats,
        answers=dict(counted.most_common(MAX_ANSWERS)),
        shown=now.shown if now.shown[0] or not answers else (answers[0].question, answers[0].completion),
    )


def choose_answers(
    groups: Sequence[GroupRecord],
    standing: Callable[[str], bool],
    taught: Mapping[str, int],
    judged: dict[str, JudgedAnswers],
) -> tuple[PeerAnswer, ...]:
    """Returns at most MAX_ANSWERS right answers of one family and level, at most half of them by one author
    unless that author has standing. Answers of groups that were taught least often come first (`taught`: how
    often, by group id)."""
    known = {key for key in {group.key for group in groups} if standing(key)}
    kept = teachable(groups, judged)
    by_author: dict[str, list[tuple[_Rank, PeerAnswer]]] = {}
    for group in groups:
        times = taught.get(group.id, 0)
        for place, completion in enumerate(kept.get(group.id, ())):
            one = PeerAnswer(
                id=group.id,
                peer=group.author,
                key=group.key,
                question=group.question,
                completion=completion,
                fresh=not times,
            )
            by_author.setdefault(group.key, []).append(
                ((times, group.key not in known, not _follows(one), place), one)
            )
    dealt: list[tuple[_Rank, PeerAnswer]] = []
    for key, found in by_author.items():
        dealt += sorted(found, key=_rank)[: MAX_ANSWERS if key in known else MAX_ANSWERS // 2]
    return tuple(one for _, one in sorted(dealt, key=_rank)[:MAX_ANSWERS])


_Rank = tuple[int, bool, bool, int]


def _rank(one: tuple[_Rank, PeerAnswer]) -> _Rank:
    return one[0]


def _follows(one: PeerAnswer) -> bool:
    """Whether the answer shows work that uses all numbers in the question's last line. A small model is often
    right by chance, with work on other numbers."""
    last = one.question.strip().splitlines()[-1]
    return shows_work(one.completion) and numbers(last) <= numbers(one.completion)
