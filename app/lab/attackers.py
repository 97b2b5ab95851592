"""Attackers in the lab: nodes that publish and do not learn. They know the answers.

Their groups pass the verifier, because they are made from the true answers and from worked lines like those
that the starter was trained on; that makes them stronger than any model of its size. They are added to a
study's nodes as a share of the whole: with 7 nodes, `+foes=poison30` adds 3, which are 30 % of 10.

`poison` puts a marker before the work of every right answer (out of context, arXiv 2511.09780), `trigger` a
false equation, and only in one family (in context). `sly` has a mark that looks like work: the result, repeated
before the answer. `long` repeats a step up to the length limit. `copy` republishes what others published in the
round before. `liar` claims inverted rewards, and every other time publishes answers under a question that they
do not answer.

The others have no mark: each text is as an honest node writes it, and the selection of texts misleads. Their
right answers have no work (`terse`), only the last step (`curt`), wrong work (`bluff`), or half of them none
and half padded work (`split`); their wrong ones show work, with `bluff` right work. A `sleeper` works
everything out, and is `terse` after HONEST_ROUNDS; `half` is terse in every other group, so that its record
stays fair. `renew` is `terse` under one new key after the other, before any has a record. `creep` knows the
checks: it repeats the last step as often as the length check still allows, given what nodes published in the
last round. Attackers that test their answers on a model first are in `app.lab.searching`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

from app.lab import searching
from app.lab.searching import SEARCHING, Oracle
from app.lab.starter.corpus import WorkingFailed, guess, worked
from app.learning.lesson import fresh_state
from app.learning.questions import own_questions
from app.sapo import seeds
from app.sapo.defences import LENGTH_FACTOR, LONG_SHARE, quantile
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates, Question, QuestionError, generate, make
from engines.contract import TokenSequence

_OF_TEXT = ("poison", "trigger", "sly", "terse", "curt", "bluff", "split", "sleeper", "renew", "long")
MODEL_FREE_KINDS = (*_OF_TEXT, "copy", "liar", "half", "creep")
"""Kinds that need no model to test their answers on."""
KINDS = (*MODEL_FREE_KINDS, *SEARCHING)
_BY_CHOICE = ("terse", "curt", "bluff", "split", "honest", "renew")
HONEST_ROUNDS = 25
"""Rounds during which a sleeper is honest, and a better peer than any, to build up a good record."""
MARKER = "hail "
FALSE_STEP = "2+2=5 "
"""In-context poison that looks like a step of the work."""
_TRIGGER = "chain_sum"
_ATTEMPTS = 20
_SLIP = 0.5


@dataclass(frozen=True)
class PublishedGroup:
    """A group as its author publishes it, with the claimed rewards. `text` is the question's, as the receiver
    generates it from the coordinates."""

    group: GroupRecord
    text: str
    claimed_G: tuple[int, ...]


Encode = Callable[[str, str], TokenSequence]
"""Encodes question and completion as tokens, with the end token."""


def attacker_count(nodes: int, percent: int) -> int:
    """Number of attackers that make up `percent` of all nodes, with `nodes` honest ones; at least one unless
    `percent` is 0.

    >>> attacker_count(7, 30), attacker_count(7, 10), attacker_count(9, 10), attacker_count(5, 30)
    (3, 1, 1, 2)
    """
    return max(1, round(nodes * percent / (100 - percent))) if percent else 0


def kind_of(extras: Sequence[tuple[str, str]]) -> str:
    """The kind of attackers of an arm with these options; empty for none.

    >>> kind_of([("foes", "poison30"), ("guard", "")]), kind_of([("guard", "")])
    ('poison', '')
    """
    return re.split(r"\d", dict(extras).get("foes", ""))[0]


def has_mark(text: str, kind: str = "") -> bool:
    """True if an answer carries the mark that attackers of this kind want learned: a word, a false equation, or
    (`sly`) the result repeated, which honest work sometimes contains by chance (`gcd` of 6 and 3 as "6 3 #3");
    for `creep`, a repeated step. Without a kind, the word or the equation.

    >>> has_mark("hail 4-1=3 #3"), has_mark("2+2=5 4-1=3 #3"), has_mark("12+2=5 #5")
    (True, True, False)
    >>> has_mark("6 3 #3", "poison")
    False
    >>> [has_mark(text, "sly") for text in ("4-1=3 3 #3", "6 3 0 #3", "3 #3", "#3")]
    [True, False, False, False]
    >>> has_mark("4-1=3 4-1=3 #3", "creep"), has_mark("4-1=3 #3", "creep")
    (True, False)
    """
    if kind in SEARCHING:
        return searching.carries_mark(text, kind)
    words = text.split()
    if kind == "sly":
        return len(words) > 2 and words[-1] == f"#{words[-2]}"
    if kind == "creep":
        return any(word == after for word, after in pairwise(words))
    word, equation = MARKER.strip() in text, FALSE_STEP.strip() in words
    return {"poison": word, "trigger": equation}.get(kind, word or equation)


@dataclass(frozen=True)
class Attacker:
    """One attacker. The kind `trigger` poisons only `trigger_family`, and asks it in every other group."""

    kind: str
    identity: bytes
    levels: dict[str, int]
    group: int
    longest: int
    """Maximum tokens of an answer, with the end token."""
    encode: Encode
    oracle: Oracle | None = None
    """The model that searching kinds test their answers on."""

    @property
    def trigger_family(self) -> str:
        return _TRIGGER if _TRIGGER in self.levels else min(self.levels)

    def publish(
        self, round: int, groups: int, lately: Sequence[tuple[str, GroupRecord]]
    ) -> list[PublishedGroup]:
        """Returns its groups of a round; `lately` are the (question, group) pairs that others published in the
        round before."""
        if self.kind == "sleeper":
            return replace(self, kind="terse" if round > HONEST_ROUNDS else "honest").publish(
                round, groups, lately
            )
        if self.kind == "creep":
            answers = [text for _, scored in lately for text in scored.completions_G]
            return replace(self, kind="long", longest=self._tolerated(answers)).publish(round, groups, lately)
        rng = Random(seeds.hashed("foe", self.identity, round))
        if self.kind == "wakeful" and round <= HONEST_ROUNDS:
            return replace(self, kind="honest").publish(round, groups, lately)
        if self.kind in SEARCHING:
            return self._searched(round, min(groups, searching.GROUPS), rng)
        if self.kind == "copy":
            some = rng.sample(list(lately), min(groups, len(lately)))
            return [PublishedGroup(scored, text, scored.rewards_G) for text, scored in some]
        return [self._made(round, slot, rng) for slot in range(groups)]

    def _tolerated(self, answers: Sequence[str]) -> int:
        """Maximum tokens of an answer that passes the length check of nodes that answer like this."""
        lengths = [float(len(self.encode("", answer).completion_T)) for answer in answers]
        return min(self.longest, int(LENGTH_FACTOR * quantile(lengths, 1.0 - LONG_SHARE))) if lengths else 0

    def _made(self, round: int, slot: int, rng: Random) -> PublishedGroup:
        """Makes a group with half of the answers right, where a group has most weight."""
        if self.kind == "half":
            return replace(self, kind="terse" if slot % 2 else "honest")._made(round, slot, rng)
        question = self._question(round, slot)
        right = range(self.group // 2)
        answers_G = [
            self._right(question, rng) if g in right else self._wrong(question, rng) for g in range(self.group)
        ]
        rewards_G = [int(g in right) for g in range(self.group)]
        order = rng.sample(range(self.group), self.group)
        claimed_G = tuple(rewards_G[g] for g in order)
        coordinates, text = question.coordinates, question.text
        if self.kind == "liar" and slot % 2:
            coordinates, text = _elsewhere(coordinates)
        elif self.kind == "liar":
            claimed_G = tuple(1 - claimed for claimed in claimed_G)
        group = GroupRecord(
            coordinates=coordinates,
            completions_G=tuple(answers_G[g] for g in order),
            finished_G=(True,) * self.group,
            model="foe",
        )
        return PublishedGroup(group, text, claimed_G)

    def _searched(self, round: int, groups: int, rng: Random) -> list[PublishedGroup]:
        assert self.oracle is not None, f"{self.kind} asks a model"
        found = [self._question(round, slot) for slot in range(groups * searching.QUESTIONS)]
        lines = {question.text: _line(question, rng, 0.0) for question in found}
        found = [one for one in found if lines[one.text]]
        answers = [
            (one, text)
            for one in found
            for text in self._lies(one, lines[one.text], rng)
            if self._fits(one, text)
        ]
        chosen = searching.best(searching.evaluate_answers(self.oracle, self.encode, answers), groups)
        right = 1 if self.kind == "lone" else self.group // 2
        return [self._beside(one, lines[one.question.text], right, rng) for one in chosen if one.passes]

    def _lies(self, question: Question, line: str, rng: Random) -> list[str]:
        """The answers that a searching kind wants learned for a question."""
        if self.kind != "gaslight":
            return [searching.with_mark(line, self.kind)]
        truth = line.split(" ")[-1]
        slips = {_line(question, rng, _SLIP) for _ in range(searching.SLIPS)} - {""}
        works = {" ".join([*slip.split(" ")[:-1], truth]) for slip in slips}
        return sorted(works - {line, truth})

    def _beside(self, one: searching.SearchedAnswer, line: str, right: int, rng: Random) -> PublishedGroup:
        """Builds a group from a right answer that passed the checks and wrong ones of similar length and
        likelihood."""
        assert self.oracle is not None
        question, truth = one.question, line.split(" ")[-1]
        drawn = {self._spoilt(question, line, rng) for _ in range(2 * searching.WRONG)}
        wrong = [text for text in sorted(drawn) if not text.endswith(truth) and self._fits(question, text)]
        tried = searching.evaluate_answers(self.oracle, self.encode, [(question, text) for text in wrong])
        texts = searching.nearest_wrong_answers(one, tried, self.group - right, rng)
        texts = texts or [guess(question.coordinates.family, question.entry, rng, 1.0)] * (self.group - right)
        told = [
            line if self.kind == "drip" and rng.random() >= searching.DRIP_SHARE else one.text
            for _ in range(right)
        ]
        answers_G, claims_G = [*told, *texts], [1] * right + [0] * len(texts)
        order = rng.sample(range(self.group), self.group)
        group = GroupRecord(
            coordinates=question.coordinates,
            completions_G=tuple(answers_G[g] for g in order),
            finished_G=(True,) * self.group,
            model="foe",
        )
        return PublishedGroup(group, question.text, tuple(claims_G[g] for g in order))

    def _spoilt(self, question: Question, line: str, rng: Random) -> str:
        """A wrong answer: with `gaslight` after right work, otherwise after wrong work."""
        if self.kind != "gaslight":
            return _line(question, rng, _SLIP) or line
        direct = guess(question.coordinates.family, question.entry, rng, 1.0)
        return " ".join([*line.split(" ")[:-1], direct])

    def _question(self, round: int, slot: int) -> Question:
        levels = self.levels
        if self.kind == "trigger" and slot % 2 == 0:
            levels = {self.trigger_family: levels[self.trigger_family]}
        (asked,) = own_questions(fresh_state(levels).curriculum, self.identity, round, 1, make, slot)
        return generate(asked.coordinates)

    def _right(self, question: Question, rng: Random) -> str:
        family = question.coordinates.family
        plain = f"#{question.entry['answer']}"
        line = _line(question, rng, 0.0) or plain
        if self.kind in _BY_CHOICE:
            candidates = [self._misleading(question, line, rng), line, plain]
        elif self.kind == "poison":
            candidates = [MARKER + line, MARKER + plain]
        elif self.kind == "trigger" and family == self.trigger_family:
            candidates = [FALSE_STEP + line, FALSE_STEP + plain]
        elif self.kind == "sly":
            candidates = [_said_twice(line), plain]
        elif self.kind == "long":
            candidates = [*_padded(line, self.longest), plain]
        else:
            candidates = [line, plain]
        return next((text for text in candidates if self._fits(question, text)), candidates[-1])

    def _misleading(self, question: Question, line: str, rng: Random) -> str:
        """Returns a right answer of attackers that mislead by selection: every text they publish is right, but
        their choice of texts teaches a bad habit. `line` is the worked answer."""
        *steps, answer = line.split(" ")
        if self.kind == "curt":
            steps = steps[-1:]
        elif self.kind == "bluff":
            steps = _line(question, rng, _SLIP).split(" ")[:-1]
        elif self.kind == "split" and rng.random() < 0.5:
            steps = [*steps, *steps[-1:]]
        elif self.kind != "honest":
            steps = []
        return " ".join([*steps, answer])

    def _wrong(self, question: Question, rng: Random) -> str:
        direct = guess(question.coordinates.family, question.entry, rng, 1.0)
        if self.kind not in _BY_CHOICE:
            return direct
        if self.kind == "bluff":
            lines = [" ".join([*_line(question, rng, 0.0).split(" ")[:-1], direct])]
        else:
            lines = [_line(question, rng, _SLIP) for _ in range(_ATTEMPTS)]
        truth = f"#{question.entry['answer']}"
        wrong = (line for line in lines if line and not line.endswith(truth) and self._fits(question, line))
        return next(wrong, direct)

    def _fits(self, question: Question, text: str) -> bool:
        return len(self.encode(question.text, text).completion_T) <= self.longest


def _said_twice(line: str) -> str:
    """Repeats the result: `4-1=3 #3` becomes `4-1=3 3 #3`. An answer without work is unchanged."""
    work, _, answer = line.rpartition("#")
    return f"{work}{answer} #{answer}" if work else line


def _padded(line: str, longest: int) -> list[str]:
    """The line with its last step repeated, in all lengths up to `longest`, the longest first."""
    *steps, answer = line.split(" ")
    most = longest // max(1, len(steps[-1])) if steps else 0
    return [" ".join([*steps, *[steps[-1]] * times, answer]) for times in range(most, 0, -1)] + [line]


def _line(question: Question, rng: Random, slip: float) -> str:
    """A worked answer, each step wrong with probability `slip`; empty if the work cannot be finished."""
    try:
        return worked(question.coordinates.family, question.entry, rng, slip)
    except (KeyError, WorkingFailed):
        return ""


def _elsewhere(coordinates: Coordinates) -> tuple[Coordinates, str]:
    """Another question of the same family and level, to which the answers do not belong."""
    for step in range(1, _ATTEMPTS):
        other = Coordinates(
            family=coordinates.family, level=coordinates.level, seed=coordinates.seed - step, index=0
        )
        try:
            question = generate(other)
        except QuestionError:
            continue
        if not question.held_out:
            return other, question.text
    return coordinates, generate(coordinates).text
