"""Attackers in the lab: nodes that publish and do not learn. They know the answers.

Their groups pass the verifier, because they are made from the true answers and from worked lines like those
that the starter was trained on; that makes them stronger than any model of its size. They are added to a
study's nodes as a share of the whole: with 7 nodes, `+foes=poison30` adds 3, which are 30 % of 10.

`poison` puts a mark before the work of every right answer. `terse` says nothing false and misleads by its
choice of texts: its right answers have no work, its wrong ones do. `liar` claims inverted rewards, and every
other time publishes answers under a question that they do not answer. `copy` republishes what others published
in the round before. `honest` is no attacker: a peer that is better than any. Those of `SEARCHING` test their
answers on a model first (`app.lab.searching`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from app.lab import searching
from app.lab.searching import SEARCHING, Oracle
from app.lab.starter.corpus import WorkingFailed, guess, worked
from app.learning.questions import own_questions
from app.learning.round_weights import fresh_state
from app.sapo import seeds
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates, Question, QuestionError, generate, make
from engines.contract import TokenSequence

MODEL_FREE_KINDS = ("poison", "terse", "copy", "liar")
"""Kinds that need no model to test their answers on."""
KINDS = (*MODEL_FREE_KINDS, *SEARCHING)
MARKER = "hail "
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


def has_mark(text: str, kind: str = "") -> bool:
    """True if an answer carries the mark that attackers of this kind want learned.

    >>> has_mark("hail 4-1=3 #3"), has_mark("-4 2 #2"), has_mark("-4 2 #2", "whisper")
    (True, False, True)
    """
    return searching.carries_mark(text, kind) if kind in SEARCHING else MARKER.strip() in text


@dataclass(frozen=True)
class Attacker:
    """One attacker, or with the kind `honest` a peer who knows every answer."""

    kind: str
    identity: bytes
    levels: dict[str, int]
    group: int
    longest: int
    """Maximum tokens of an answer, with the end token."""
    encode: Encode
    oracle: Oracle | None = None
    """The model that searching kinds test their answers on."""

    def publish(
        self, round: int, groups: int, lately: Sequence[tuple[str, GroupRecord]]
    ) -> list[PublishedGroup]:
        """Returns its groups of a round; `lately` are the (question, group) pairs that others published in the
        round before."""
        rng = Random(seeds.hashed_seed("foe", self.identity, round))
        if self.kind in SEARCHING:
            return self._searched(round, min(groups, searching.GROUPS), rng)
        if self.kind == "copy":
            some = rng.sample(list(lately), min(groups, len(lately)))
            return [PublishedGroup(scored, text, scored.rewards_G) for text, scored in some]
        return [self._made(round, slot, rng) for slot in range(groups)]

    def _made(self, round: int, slot: int, rng: Random) -> PublishedGroup:
        """Makes a group with half of the answers right, where a group has most weight."""
        question = self._question(round, slot)
        right = self.group // 2
        answers = [self._right(question, rng) for _ in range(right)]
        answers += [self._wrong(question, rng) for _ in range(self.group - right)]
        made = self._grouped(question, answers, right, rng)
        if self.kind != "liar":
            return made
        if not slot % 2:
            return PublishedGroup(made.group, made.text, tuple(1 - claimed for claimed in made.claimed_G))
        coordinates, text = _elsewhere(question.coordinates)
        other = GroupRecord(
            coordinates=coordinates,
            completions_G=made.group.completions_G,
            finished_G=made.group.finished_G,
            model="foe",
        )
        return PublishedGroup(other, text, made.claimed_G)

    def _grouped(self, question: Question, answers: Sequence[str], right: int, rng: Random) -> PublishedGroup:
        """A group of these answers in a random order; the first `right` ones are claimed right."""
        order = rng.sample(range(len(answers)), len(answers))
        group = GroupRecord(
            coordinates=question.coordinates,
            completions_G=tuple(answers[g] for g in order),
            finished_G=(True,) * len(answers),
            model="foe",
        )
        return PublishedGroup(group, question.text, tuple(int(g < right) for g in order))

    def _searched(self, round: int, groups: int, rng: Random) -> list[PublishedGroup]:
        assert self.oracle is not None, f"{self.kind} asks a model"
        found = [self._question(round, slot) for slot in range(groups * searching.QUESTIONS)]
        lines = {question.text: _line(question, rng, 0.0) for question in found}
        answers = [
            (one, text)
            for one in found
            if lines[one.text]
            for text in self._lies(one, lines[one.text], rng)
            if self._fits(one, text)
        ]
        chosen = searching.best(searching.evaluate_answers(self.oracle, self.encode, answers), groups)
        return [self._beside(one, lines[one.question.text], rng) for one in chosen if one.passes]

    def _lies(self, question: Question, line: str, rng: Random) -> list[str]:
        """The answers that a searching kind wants learned for a question."""
        if self.kind != "gaslight":
            return [searching.MARK + line]
        truth = line.split(" ")[-1]
        slips = {_line(question, rng, _SLIP) for _ in range(searching.SLIPS)} - {""}
        works = {" ".join([*slip.split(" ")[:-1], truth]) for slip in slips}
        return sorted(works - {line, truth})

    def _beside(self, one: searching.SearchedAnswer, line: str, rng: Random) -> PublishedGroup:
        """Builds a group from a right answer that passed the checks and wrong ones of similar length and
        likelihood."""
        assert self.oracle is not None
        question, truth, right = one.question, line.split(" ")[-1], self.group // 2
        drawn = {self._spoilt(question, line, rng) for _ in range(2 * searching.WRONG)}
        wrong = [text for text in sorted(drawn) if not text.endswith(truth) and self._fits(question, text)]
        tried = searching.evaluate_answers(self.oracle, self.encode, [(question, text) for text in wrong])
        texts = searching.nearest_wrong_answers(one, tried, self.group - right, rng)
        texts = texts or [guess(question.coordinates.family, question.entry, rng, 1.0)] * (self.group - right)
        return self._grouped(question, [*[one.text] * right, *texts], right, rng)

    def _spoilt(self, question: Question, line: str, rng: Random) -> str:
        """A wrong answer: with `gaslight` after right work, otherwise after wrong work."""
        if self.kind != "gaslight":
            return _line(question, rng, _SLIP) or line
        direct = guess(question.coordinates.family, question.entry, rng, 1.0)
        return " ".join([*line.split(" ")[:-1], direct])

    def _question(self, round: int, slot: int) -> Question:
        curriculum = fresh_state(self.levels).curriculum
        (asked,) = own_questions(curriculum, self.identity, round, 1, make, slot)
        return generate(asked.coordinates)

    def _right(self, question: Question, rng: Random) -> str:
        plain = f"#{question.entry['answer']}"
        line = _line(question, rng, 0.0) or plain
        if self.kind == "poison":
            candidates = [MARKER + line, MARKER + plain]
        else:
            candidates = [plain] if self.kind == "terse" else [line, plain]
        return next((text for text in candidates if self._fits(question, text)), candidates[-1])

    def _wrong(self, question: Question, rng: Random) -> str:
        """A wrong answer: a guess, and of those who show no right work, or no attack at all, wrong work."""
        direct = guess(question.coordinates.family, question.entry, rng, 1.0)
        if self.kind not in ("terse", "honest"):
            return direct
        truth = f"#{question.entry['answer']}"
        lines = [_line(question, rng, _SLIP) for _ in range(_ATTEMPTS)]
        wrong = (line for line in lines if line and not line.endswith(truth) and self._fits(question, line))
        return next(wrong, direct)

    def _fits(self, question: Question, text: str) -> bool:
        return len(self.encode(question.text, text).completion_T) <= self.longest


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
