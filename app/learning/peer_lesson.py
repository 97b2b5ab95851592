"""Peer lessons: supervised lessons that teach a model a new puzzle family from peers' right answers.

A node weighs peers' groups only in families that it trains on, because in other families all own answers are
wrong and there is nothing to weigh them against. Groups of other families wait (`app.swarm.intake.buffer`)
until there are enough right answers for a lesson: supervised steps on these answers, with own right answers of
the active families mixed in and small talk held (`app.learning.language`), then a trial on separate questions.
Families that pass the trial become active. If none passes, or own families or everyday language lost too much,
the adapter is reset to its state before the lesson.

A lesson must be broad: a hundred answers of one form make a model forget its own families and its everyday
language, three hundred answers of eight families do not (LOG.md). A family that a lesson opened gets further
lessons while it is weak: they help more than rounds in which one answer in ten is right.

`app.learning.agreement` decides which answers may be imitated. Among these, answers that were taught in fewest
lessons come first, then those whose work has the question's numbers, and one answer per question before any
second one. So lessons stay broad where the answers of an archive are few.

Left out: the source's log-probabilities (a peer can invent them), and wrong answers, whose weight needs a
policy that could have written them. Pure functions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import zip_longest

import msgspec

from app.learning.agreement import numbers, right_answers, teachable
from app.learning.placement import FamilyTrial, LessonResult, OwnExample, Placement
from app.sapo.asking import shows_work
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from app.sapo.reading.expression import has_false_equation

NEVER_TAUGHT: Mapping[str, int] = {}
"""How many lessons taught each group, by its id: none yet."""
MAX_FAMILY_ANSWERS, MIN_FAMILY_ANSWERS = 48, 24
"""Maximum and minimum number of right answers of a family in a lesson."""
MAX_LESSON_FAMILIES, MIN_PEER_ANSWERS = 5, 96
"""Maximum number of families in a lesson, and the minimum of peers' right answers in all of them together."""
MAX_NEW_FAMILIES, BROAD_FAMILIES = 1, 4
"""MAX_NEW_FAMILIES: maximum number of families without a right answer so far in a lesson that also continues
others; more if these are fewer than BROAD_FAMILIES, up to BROAD_FAMILIES in all."""
ANSWERS_MEASURED = 6
"""Answers of each family whose log-probabilities are measured before a lesson. The families with the likeliest
answers (nats of a whole answer) are taught: of eight families that were taught, these four gained most
(LOG.md)."""
MIN_TO_MEASURE, LIKELIEST_FAMILIES = 3, 5
"""MIN_TO_MEASURE: minimum right answers of a waiting family before some are read. LIKELIEST_FAMILIES: once
more families than this were read, peers are asked only for the LIKELIEST_FAMILIES families with the likeliest
answers. A node fetches a few groups a minute, and a lesson in an unlikely family costs as much and brings
nothing."""
ROTATING_FAMILIES = 3
"""Number of further families that are asked for, in rotation: otherwise two keys with a few short answers in
LIKELIEST_FAMILIES families would always decide what is asked for."""
REHEARSED = 12
"""Peers' answers of each open family outside a lesson that are mixed into it. Families that were left out lost
a quarter of their right answers or more (LOG.md)."""
MAX_OWN_ANSWERS, OWN_ROUNDS = 64, 16
"""MAX_OWN_ANSWERS: maximum number of own right answers mixed in. OWN_ROUNDS: from this round on there are
enough of them, and a lesson needs only MIN_FAMILY_ANSWERS answers of peers; before that it needs
MIN_PEER_ANSWERS."""
MIN_AUTHORS = 2
"""Minimum number of independent authors of a lesson, unless one of them is vouched for."""
PASSES = 2
"""Number of epochs over a lesson's answers (LOG.md)."""
FINISHED_SHARE, MAX_FAILURES = 0.7, 5
"""A family gets no further lessons once its trial reaches this share of right answers, or after this many
lessons in a row without a gain: a lesson's true gain of a few points is often too small for its trial."""
ROUNDS_AFTER_GAIN, ROUNDS_AFTER_NO_GAIN = 3, 4
"""Rounds from one lesson to the next, counting the lesson's own: ROUNDS_AFTER_GAIN if it improved a family,
which is practised in between together with the model's own families, else ROUNDS_AFTER_NO_GAIN."""
REST_ROUNDS, MAX_REST_DOUBLINGS, FAILURES_BEFORE_REST = 10, 4, 2
"""A family in which FAILURES_BEFORE_REST lessons in a row gained nothing waits REST_ROUNDS rounds, doubled
after each further failure (at most MAX_REST_DOUBLINGS times)."""
TRIAL_QUESTIONS = 12
"""Questions per family in a trial; a lesson's two trials, before and after it, ask the same ones."""
OPENS_SOLVED_SHARE, OPENS_ABOVE_CHANCE = 1 / 6, 0.05
"""A trial opens a family if this share of questions has a right answer among ANSWERS_PER_QUESTION, and the
share of right answers exceeds by OPENS_ABOVE_CHANCE what the same answers earn at another question of the
family. A constant answer earns the same at both."""
MAX_OWN_LOSS, MAX_PERPLEXITY_RISE = 0.05, 0.05
"""Maximum cost of lessons: drop of the share of right answers in the active families by one lesson, and
relative rise of the perplexity of everyday replies over its value before the first round."""
NOISE_ERRORS = 1.5
"""A loss between two trials counts only above this many standard errors of the difference."""
MAX_ACTIVE = 16
"""Maximum number of active families: with this many, no lesson opens another one."""


class PeerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A peer's right answer that a lesson teaches. `id` is the group's, `peer` the author's name."""

    id: str
    peer: str
    question: str
    completion: str


class FamilyAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of one family at one level that a lesson teaches."""

    family: str
    level: int
    answers: tuple[PeerAnswer, ...]

    @property
    def authors(self) -> tuple[str, ...]:
        """Names of the peers whose answers are taught, those with most answers first."""
        return tuple(name for name, _ in Counter(one.peer for one in self.answers).most_common())


RightAnswer = tuple[str, str]
"""A question and a right answer to it."""


class PeerLesson(msgspec.Struct, frozen=True, kw_only=True):
    """The answers that one lesson teaches. `beside`: answers of active families, most of them the model's own,
    mixed in so that these are not forgotten."""

    parts: tuple[FamilyAnswers, ...]
    beside: tuple[RightAnswer, ...] = ()

    @property
    def levels(self) -> dict[str, int]:
        """The level of each family."""
        return {one.family: one.level for one in self.parts}

    @property
    def answers(self) -> list[PeerAnswer]:
        """Peers' answers of all families in the lesson."""
        return [answer for one in self.parts for answer in one.answers]


def next_lesson(
    groups: Iterable[GroupRecord],
    found: Placement,
    round: int,
    vouched: Callable[[str], bool],
    taught: Mapping[str, int] = NEVER_TAUGHT,
) -> PeerLesson | None:
    """Returns the lesson that may be taught after `round`, or None: all families with enough answers, each at
    its easiest level (`likeliest_families` selects among them). `vouched` tells whether an author, by key, is
    trusted without a second one. `taught`: by group id, the number of lessons that taught it."""
    if not round or round < _next_round(found):
        return None
    known = {*found.in_play, *resting_families(found, round)} - set(families_still_taught(found))
    full = len(found.in_play) >= MAX_ACTIVE
    places: dict[tuple[str, int], list[GroupRecord]] = {}
    for group in groups:
        at = group.coordinates
        if at.family not in known and (at.family in found.in_play or not full):
            places.setdefault((at.family, at.level), []).append(group)
    able = [
        FamilyAnswers(family=family, level=level, answers=found_)
        for (family, level), some in places.items()
        if len(found_ := choose_answers(some, vouched, taught)) >= MIN_FAMILY_ANSWERS
    ]
    easiest: dict[str, FamilyAnswers] = {}
    for one in sorted(able, key=lambda one: (one.level, -len(one.answers), one.family)):
        easiest.setdefault(one.family, one)
    lesson = PeerLesson(parts=tuple(easiest.values()))
    needed = MIN_FAMILY_ANSWERS if round >= OWN_ROUNDS else MIN_PEER_ANSWERS
    return lesson if len(lesson.answers) >= needed else None


def families_still_taught(found: Placement) -> tuple[str, ...]:
    """Returns the active families that a lesson opened and that get further lessons: their trial is below
    FINISHED_SHARE, and fewer than MAX_FAILURES lessons in a row failed."""
    return tuple(
        one.family
        for one in found.lessons
        if one.family in found.joined
        and one.opened
        and one.after < FINISHED_SHARE
        and one.failures < MAX_FAILURES
    )


def answers_to_measure(
    groups: Iterable[GroupRecord], families: Container[str], vouched: Callable[[str], bool]
) -> PeerLesson:
    """Returns up to ANSWERS_MEASURED right answers of each of the `families`, to measure how likely the model
    finds them. A family needs MIN_TO_MEASURE answers at one level, by two authors or by one who is vouched
    for; the lowest such level is taken, and authors alternate. The answers are only read, never taught, so
    authors need not agree."""
    found: dict[tuple[int, str], dict[str, list[PeerAnswer]]] = {}
    for group in groups:
        at = group.coordinates
        if at.family in families:
            found.setdefault((at.level, at.family), {}).setdefault(group.key, []).extend(
                PeerAnswer(id=group.id, peer=group.author, question=group.question, completion=completion)
                for completion in sorted(right_answers(group))
            )
    parts: dict[str, FamilyAnswers] = {}
    for (level, family), by_author in sorted(found.items(), key=lambda one: one[0]):
        some = [one for turn in zip_longest(*by_author.values()) for one in turn if one is not None]
        if len(some) >= MIN_TO_MEASURE and (len(by_author) >= MIN_AUTHORS or any(map(vouched, by_author))):
            parts.setdefault(
                family, FamilyAnswers(family=family, level=level, answers=tuple(some[:ANSWERS_MEASURED]))
            )
    return PeerLesson(parts=tuple(parts.values()))


def families_to_request(families: Sequence[str], nats: Mapping[str, float], turn: int) -> tuple[str, ...]:
    """Returns those of the waiting `families` whose answers are requested from peers: all of them until more
    than LIKELIEST_FAMILIES were read, then the LIKELIEST_FAMILIES with the lowest `nats` (see
    `likeliest_families`) and ROTATING_FAMILIES others, the next ones in each turn.

    >>> families_to_request("abcdefgh", {"a": 90.0, "c": 50.0}, 0)
    ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h')
    >>> nats = dict(zip("abcdefg", (90.0, 81.0, 50.0, 64.0, 92.0, 46.0, 60.0)))
    >>> ["".join(families_to_request("abcdefghijk", nats, turn)) for turn in (0, 1, 2)]
    ['fcgdbaeh', 'fcgdbijk', 'fcgdbaeh']
    """
    known = sorted((one for one in families if one in nats), key=lambda one: nats[one])
    if len(known) <= LIKELIEST_FAMILIES:
        return tuple(families)
    others = [one for one in families if one not in known[:LIKELIEST_FAMILIES]]
    start = ROTATING_FAMILIES * turn % max(1, len(others))
    return (
        *known[:LIKELIEST_FAMILIES],
        *(others + others)[start : start + min(ROTATING_FAMILIES, len(others))],
    )


def likeliest_families(lesson: PeerLesson, nats: Mapping[str, float], found: Placement) -> PeerLesson:
    """Returns the lesson with at most MAX_LESSON_FAMILIES families. Families that are active or had a right
    answer in a trial take turns, the least recently taught first. Others cost as many steps and gain little
    (LOG.md), so only MAX_NEW_FAMILIES of them, the likeliest, are taught beside these; more if these are
    fewer than BROAD_FAMILIES, or none. `nats`: by family, the model's mean negative log-probability of a
    whole answer; unread families come after read ones. Families whose answers mostly show no work come last,
    because short answers are always likely. New families are opened only up to MAX_ACTIVE. REHEARSED answers
    of each active family that is left out go into `beside`."""
    latest = {one.family: one.round for one in found.lessons if one.after}

    def order(part: FamilyAnswers) -> tuple[bool, int, float]:
        worked = sum(shows_work(one.completion) for one in part.answers)
        direct = 2 * worked < len(part.answers)
        return direct, latest.get(part.family, -1), nats.get(part.family, math.inf)

    parts = sorted(lesson.parts, key=order)
    begun = [one for one in parts if one.family in {*latest, *found.in_play}]
    far = [one for one in parts if one not in begun]
    parts = [
        *far[: max(MAX_NEW_FAMILIES, BROAD_FAMILIES - len(begun)) if begun else MAX_LESSON_FAMILIES],
        *begun,
    ]
    unopened = [one for one in parts if one.family not in found.in_play]
    over = unopened[max(0, MAX_ACTIVE - len(found.in_play)) :]
    parts = [one for one in parts if one not in over][:MAX_LESSON_FAMILIES]
    left_out = [one for one in begun if one.family in found.in_play and one not in parts]
    rehearsed = [(each.question, each.completion) for one in left_out for each in one.answers[:REHEARSED]]
    return msgspec.structs.replace(lesson, parts=tuple(parts), beside=(*lesson.beside, *rehearsed))


def own_answers(
    groups: Iterable[GroupRecord], families: Iterable[str], taught: Sequence[OwnExample]
) -> list[tuple[Coordinates, str]]:
    """Returns own right answers for a lesson with their questions' coordinates: the latest of `groups` (newest
    first), then those that the first lesson `taught`. One per question, alternating between the families, at
    most MAX_OWN_ANSWERS."""
    found: dict[str, dict[Coordinates, str]] = {family: {} for family in families}
    for group in groups:
        at = group.coordinates
        right = [
            completion
            for completion, reward, finished in zip(
                group.completions_G, group.rewards_G, group.finished_G, strict=True
            )
            if reward and finished and not has_false_equation(completion)
        ]
        if right and at.family in found:
            found[at.family].setdefault(at, right[0])
    for one in taught:
        if one.coordinates.family in found:
            found[one.coordinates.family].setdefault(one.coordinates, one.completion)
    queues = [list(each.items()) for each in found.values()]
    dealt = [one for place in range(MAX_OWN_ANSWERS) for queue in queues for one in queue[place : place + 1]]
    return dealt[:MAX_OWN_ANSWERS]


def _next_round(found: Placement) -> int:
    """Returns the first round after which a lesson is allowed again."""
    latest = max((one.round for one in found.lessons), default=-ROUNDS_AFTER_NO_GAIN)
    helped = any(not one.failures for one in found.lessons if one.round == latest)
    return latest + (ROUNDS_AFTER_GAIN if helped else ROUNDS_AFTER_NO_GAIN)


def resting_families(found: Placement, round: int) -> list[str]:
    """Returns the families whose lessons failed FAILURES_BEFORE_REST times or more and that still wait for
    another one after `round`."""
    return [
        one.family
        for one in found.lessons
        if (failures := one.failures - FAILURES_BEFORE_REST) >= 0
        and round - one.round < REST_ROUNDS << min(failures, MAX_REST_DOUBLINGS)
    ]


def choose_answers(
    groups: Sequence[GroupRecord], vouched: Callable[[str], bool], taught: Mapping[str, int] = NEVER_TAUGHT
) -> tuple[PeerAnswer, ...]:
    """Returns at most MAX_FAMILY_ANSWERS right answers of one family and level, at most half of them by one
    author unless that author is vouched for. Answers taught in fewest lessons come first (`taught`: number of
    lessons by group id). Empty if there are too few authors."""
    authors = {group.key for group in groups}
    trusted = {key for key in authors if vouched(key)}
    if len(authors) < MIN_AUTHORS and not trusted:
        return ()
    kept = teachable(groups, trusted)
    by_author: dict[str, list[tuple[_Rank, PeerAnswer]]] = {}
    for group in groups:
        for place, completion in enumerate(kept.get(group.id, ())):
            one = PeerAnswer(id=group.id, peer=group.author, question=group.question, completion=completion)
            rank = (taught.get(group.id, 0), not _follows(one), place)
            by_author.setdefault(group.key, []).append((rank, one))
    dealt: list[tuple[_Rank, PeerAnswer]] = []
    most = MAX_FAMILY_ANSWERS // 2
    for key, found in by_author.items():
        dealt += sorted(found, key=_rank)[: MAX_FAMILY_ANSWERS if key in trusted else most]
    if not trusted and len(by_author) < MIN_AUTHORS:
        return ()
    return tuple(one for _, one in sorted(dealt, key=_rank)[:MAX_FAMILY_ANSWERS])


_Rank = tuple[int, bool, int]


def _rank(one: tuple[_Rank, PeerAnswer]) -> _Rank:
    return one[0]


def _follows(one: PeerAnswer) -> bool:
    """Whether the answer shows work that uses all numbers in the question's last line. A small model is often
    right by chance, with work on other numbers."""
    last = one.question.strip().splitlines()[-1]
    return shows_work(one.completion) and numbers(last) <= numbers(one.completion)


def passes_trial(tried: FamilyTrial) -> bool:
    """Whether a trial shows that the model can continue learning a family in ordinary rounds.

    >>> good = FamilyTrial(
    ...     family="gcd", level=0, questions=12, any=6, answers=48, solved=10, crossed=48, lucky=2
    ... )
    >>> lucky, narrow = (msgspec.structs.replace(good, **change) for change in ({"lucky": 9}, {"any": 1}))
    >>> passes_trial(good), passes_trial(lucky), passes_trial(narrow)
    (True, False, False)
    """
    return tried.any_share >= OPENS_SOLVED_SHARE and tried.merit[0] >= OPENS_ABOVE_CHANCE


def family_gained(before: FamilyTrial, after: FamilyTrial) -> bool:
    """Whether a lesson improved a family, judged by trials on the same questions before and after it."""
    return _share([after]) - _share([before]) >= OPENS_ABOVE_CHANCE


def lesson_helped(before: Sequence[FamilyTrial], after: Sequence[FamilyTrial], continued: bool) -> bool:
    """Whether a lesson improved one of its families by OPENS_ABOVE_CHANCE, or all of them together by any
    amount: the trial of one family is too short to show a small gain. A lesson that `continued` open families
    need only not have made them worse by more than noise: its true gain of a few points is smaller than a
    trial's noise, and taking it back costs minutes of work.

    >>> low, high = (FamilyTrial(family="gcd", level=0, answers=48, solved=n) for n in (12, 13))
    >>> lesson_helped([low], [high], False), lesson_helped([low, high], [high, low], False)
    (True, False)
    >>> lesson_helped([high], [low], True)
    True
    """
    if any(map(family_gained, before, after)) or _share(after) > _share(before):
        return True
    return continued and not _lost(before, after)


def lesson_harmed(
    before: Sequence[FamilyTrial],
    after: Sequence[FamilyTrial],
    everyday: tuple[float | None, float | None],
    untaught: float | None = None,
) -> bool:
    """Whether a lesson cost more than MAX_OWN_LOSS or MAX_PERPLEXITY_RISE. `before` and `after`: trials of
    the active families, or none to judge everyday language alone. `everyday`: perplexity of everyday replies
    before and after the lesson, None for a model that does not chat. `untaught`: the perplexity before the
    first round, None if unknown. All lessons together may raise it by MAX_PERPLEXITY_RISE. Lessons often
    lower it (small talk is trained on), and the next one may use up what they gained.

    >>> was, now = (FamilyTrial(family="gcd", level=0, answers=48, solved=n) for n in (24, 16))
    >>> lesson_harmed([was], [was], (20.0, 20.5)), lesson_harmed([was], [now], (None, None))
    (False, True)
    >>> lesson_harmed([was], [was], (20.0, 22.0))
    True
    >>> [lesson_harmed([was], [was], talk, 20.0) for talk in ((20.8, 21.2), (22.0, 21.9), (18.0, 20.5))]
    [True, False, False]
    """
    first, last = everyday
    talk = False
    if first is not None and last is not None:
        talk = last > max(first, (1 + MAX_PERPLEXITY_RISE) * (untaught or first))
    return talk or _lost(before, after, MAX_OWN_LOSS)


def _lost(before: Sequence[FamilyTrial], after: Sequence[FamilyTrial], least: float = 0.0) -> bool:
    """Whether the share of right answers fell by more than `least` and by more than noise."""
    was, now = _share(before), _share(after)
    answers = max(1, sum(one.answers for one in after))
    error = math.sqrt((was * (1 - was) + now * (1 - now)) / answers)
    return was - now > max(least, NOISE_ERRORS * error)


def _share(tried: Sequence[FamilyTrial]) -> float:
    return sum(one.solved for one in tried) / max(1, sum(one.answers for one in tried))


def after_lesson(
    found: Placement,
    lesson: PeerLesson,
    before: Sequence[FamilyTrial],
    after: Sequence[FamilyTrial],
    round: int,
    kept: bool = True,
) -> Placement:
    """Returns the placement with the results of a lesson, from the trials of its families before and after it.
    A lesson that was not `kept` opens nothing. A family that gained but is not open yet may be taught again
    soon."""
    failures = {one.family: one.failures for one in found.lessons}
    results = [
        LessonResult(
            family=part.family,
            level=part.level,
            round=round,
            opened=part.family in found.joined or (kept and passes_trial(last)),
            failures=0
            if kept and (family_gained(first, last) or (passes_trial(last) and part.family not in found.joined))
            else failures.get(part.family, 0) + 1,
            before=_share([first]),
            after=_share([last if kept else first]),
            authors=part.authors,
            answers=len(part.answers),
        )
        for part, first, last in zip(lesson.parts, before, after, strict=True)
    ]
    others = [one for one in found.lessons if one.family not in lesson.levels]
    opened = {one.family: one.level for one in results if one.opened}
    return msgspec.structs.replace(found, lessons=(*others, *results), joined=opened | found.joined)
