"""Imitation: which right answers of peers a round teaches, in families that the model cannot do yet.

SAPO weighs peers' groups in families that the model has right answers in itself; in others there is nothing to
weigh them against. Their groups wait (`app.swarm.intake.buffer`), and every round has a budget of supervised
rows for them, in the same optimiser steps' sequence as its own groups, so that what is practised keeps what is
learned (blocks of such rows were half forgotten after twelve rounds, LOG.md).

Every answer is an examination before it is a lesson: its nats before the step that teaches it come with the
forward pass (prequential evaluation; Dawid 1984). How fast these fall per token is a family's progress
(prediction gain; Graves et al. 2017, arXiv 1704.03003), known with an error. The budget goes to a few
families at a time, a block of answers each, until all had one (the same number of rows among nine families
opened none, LOG.md); then to draws from these progresses (Thompson sampling). Nats are
compared within an author, because authors write differently.

`app.learning.teachable` decides what is taught of an answer; those taught least often come first, then those of
authors with standing, then those whose work has the question's numbers, and one answer per question before any
second one.

Left out: the source's log-probabilities (a peer can invent them), and wrong answers, whose weight needs a
policy that could have written them. Pure functions.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

import msgspec

from app.learning.evidence import Evidence
from app.learning.teachable import numbers, teachable
from app.sapo.asking import shows_work
from app.sapo.groups import GroupRecord

ROWS_PER_QUESTION = 10
"""Peers' answers in a round for each of its own questions, at most: about one and a half times their cost."""
PER_STEP, RATE = 4, 3e-4
"""Answers of an optimiser step, and its learning rate: that of RL steps would teach them too slowly. Twice as
many in a step taught half as much, and cost more of the everyday language (LOG.md)."""
AT_ONCE, BLOCK = 3, 128
"""Families that share a round's budget, and the answers of a family before the next one's turn."""
REHEARSED = 1 / 3
"""Share of the budget for families that had their block: what is not rehearsed beside the next ones is
forgotten (LOG.md)."""
MIN_ANSWERS = 8
"""Minimum answers of a family and level."""
MAX_ANSWERS = 48
"""Maximum answers of a family in a round; at most half of them by one author without standing."""
JUDGED_AGAIN = 8
"""A family's answers are judged again when at least one of this many groups came since the last time."""
DONE_SHARE = 0.7
"""A family whose own answers are right this often is practised with peers' groups instead."""
_FAST, _SLOW = 0.6, 0.9  # what is left of old observations after a round in which the family was taught
_BASE, _AUTHORS = 8, 16  # observations that make an author's usual nats; authors remembered in a family
_NATS = 3.0  # the least spread of answers' nats


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
    """What was taught in a family, and what it brought. `usual`: by author's key, nats of its first answers.
    `fast`, `slow`: nats of answers less their author's usual ones, over few and over more rounds. `likely`:
    the probability of answers, over few rounds. `tokens`: of a row. `answers`: how many were taught in all, by
    author's name; `shown`: question and answer of one."""

    level: int
    usual: dict[str, Evidence] = {}
    fast: Evidence = Evidence()
    slow: Evidence = Evidence()
    likely: Evidence = Evidence()
    tokens: Evidence = Evidence()
    answers: dict[str, int] = {}
    shown: tuple[str, str] = ("", "")

    @property
    def count(self) -> int:
        """How many answers were taught."""
        return sum(self.answers.values())

    @property
    def progress(self) -> tuple[float, float]:
        """By how many nats an answer became likelier, and the standard error."""
        error = self.fast.error(_NATS) ** 2 + self.slow.error(_NATS) ** 2
        return self.slow.mean - self.fast.mean, error**0.5

    @property
    def authors(self) -> tuple[str, ...]:
        """Names of those whose answers were taught, those with most answers first."""
        return tuple(name for name, _ in Counter(self.answers).most_common())


class Judged:
    """Remembers which answers of each family and level may be imitated, because judging them takes tenths of a
    second. Groups that came since are left out until there are enough of them (JUDGED_AGAIN)."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[frozenset[str], dict[str, list[str]]]] = {}

    def teachable(self, groups: Sequence[GroupRecord]) -> dict[str, list[str]]:
        """As `app.learning.teachable.teachable`."""
        place = (groups[0].coordinates.family, groups[0].coordinates.level)
        ids = frozenset(group.id for group in groups)
        before, kept = self._known.get(place, (frozenset(), {}))
        if len(ids - before) * JUDGED_AGAIN >= len(ids):
            kept = teachable(groups)
            self._known[place] = (ids, kept)
        return kept


def families_with_answers(
    groups: Iterable[GroupRecord],
    able: Callable[[str, int], bool],
    standing: Callable[[str], bool],
    taught: Mapping[str, int],
    judged: Judged,
) -> list[FamilyAnswers]:
    """Returns, for each family that may be taught (`able`, by family and level), the answers of its easiest
    level with enough of them. `standing`: whether an author, by key, has standing. `taught`: how often each
    group was, by id."""
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
    """Returns how many of a round's `rows` each family gets. AT_ONCE share them, but for what is REHEARSED:
    first families in the middle of their block, then those that were never taught, the shortest answers first
    (they cost least, and leave the least room for a slip). When all had a block, blocks go by Thompson draws of
    progress per token.

    >>> answer = PeerAnswer(id="1", peer="Ann", key="a", question="2+2?", completion="#4")
    >>> gcd, lcm, aiw, bits = (
    ...     FamilyAnswers(family=family, level=0, answers=(answer,) * 48)
    ...     for family in ("gcd", "lcm", "aiw", "bits")
    ... )
    >>> fast, slow = (Evidence(n=40.0, mean=mean, m2=400.0) for mean in (-9.0, -3.0))
    >>> learns = FamilyTaught(level=0, fast=fast, slow=slow, answers={"Ann": 128})
    >>> still, begun = msgspec.structs.replace(learns, fast=slow), FamilyTaught(level=0, answers={"Ann": 120})
    >>> deal_rows(80, [gcd, lcm, aiw, bits], {"gcd": learns, "lcm": still, "aiw": begun}, Random(1))
    {'gcd': 13, 'lcm': 13, 'aiw': 8, 'bits': 46}
    """

    def turn(one: FamilyAnswers) -> tuple[int, float]:
        known = before.get(one.family)
        if known is None or not known.count:
            return 1, statistics.median(len(answer.completion) for answer in one.answers)
        if known.count % BLOCK:
            return 0, -known.count
        mean, error = known.progress
        return 2, -draws.gauss(mean, error) / max(1.0, known.tokens.mean)

    some = [one for one in offered if one.answers]
    order, dealt = sorted(some, key=turn), Counter[str]()
    had = [one for one in some if one.family in before and before[one.family].count >= BLOCK]
    if len(had) < len(some):
        for one in had:
            dealt[one.family] = min(len(one.answers), int(REHEARSED * rows / len(had)))
        order = [one for one in order if one not in had]
    for place, one in enumerate(order):
        known, left = before.get(one.family), rows - dealt.total()
        room = BLOCK - known.count % BLOCK if known is not None else BLOCK
        share = math.ceil(left / max(1, min(AT_ONCE, len(order)) - place))
        dealt[one.family] += min(len(one.answers) - dealt[one.family], room, share)
    for one in [*order, *had]:  # what is left, because a block ends or answers are few
        dealt[one.family] += min(len(one.answers) - dealt[one.family], rows - dealt.total())
    return dict(+dealt)


def after_teaching(
    before: FamilyTaught | None,
    level: int,
    answers: Sequence[PeerAnswer],
    nats: Sequence[float],
    tokens: Sequence[int],
) -> FamilyTaught:
    """Returns what is known of a family after a round that taught these `answers`. `nats` of each before the
    step that taught it, `tokens` of each row. Only answers of groups that were never taught before tell
    anything.

    >>> one = PeerAnswer(id="1", peer="Ann", key="a", question="2+2?", completion="#4")
    >>> first = after_teaching(None, 0, [one] * 8, [12.0] * 8, [20] * 8)
    >>> later = after_teaching(first, 0, [one] * 8, [8.0] * 8, [20] * 8)
    >>> round(later.progress[0], 2), later.authors
    (0.39, ('Ann',))
    """
    now = before if before is not None and before.level == level else FamilyTaught(level=level)
    usual, apart = dict(now.usual), list[float]()
    for answer, found in zip(answers, nats, strict=True):
        if not answer.fresh:
            continue
        known = usual.get(answer.key, Evidence())
        if known.n < _BASE:
            usual[answer.key] = known = known + Evidence.of([found])
        apart.append(found - known.mean)
    fresh = seen = Evidence.of(apart)
    likely = [math.exp(-found) for answer, found in zip(answers, nats, strict=True) if answer.fresh]
    if not apart:  # without new answers nothing more is known to be gained
        seen = Evidence(n=len(answers) / 2, mean=now.fast.mean)
    counted = Counter(now.answers) + Counter(answer.peer for answer in answers)
    return msgspec.structs.replace(
        now,
        usual=dict([*usual.items()][-_AUTHORS:]),
        fast=now.fast.faded(_FAST) + fresh,
        slow=now.slow.faded(_SLOW) + seen,
        likely=now.likely.faded(_FAST) + Evidence.of(likely),
        tokens=now.tokens.faded(_SLOW) + Evidence.of(map(float, tokens)),
        answers=dict(counted.most_common(_AUTHORS)),
        shown=now.shown if now.shown[0] or not answers else (answers[0].question, answers[0].completion),
    )


def choose_answers(
    groups: Sequence[GroupRecord], standing: Callable[[str], bool], taught: Mapping[str, int], judged: Judged
) -> tuple[PeerAnswer, ...]:
    """Returns at most MAX_ANSWERS right answers of one family and level, at most half of them by one author
    unless that author has standing. Answers of groups that were taught least often come first (`taught`: how
    often, by group id)."""
    known = {key for key in {group.key for group in groups} if standing(key)}
    kept = judged.teachable(groups)
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
