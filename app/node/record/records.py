"""Rows of the history. A round and a probe are one record each, which is stored, written as an event with
`--json`, and shown by every view. Figures are declared here and measured in app.node.round.keeping and
app.node.round.probing. Also the sentences about everyday language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from hashlib import sha256
from typing import Any, ClassVar, Self

import msgspec

from app.sapo.probe import Score
from app.sapo.questions import Coordinates, QuestionPrompt
from app.sapo.sets.question_set import is_owners_set

JOINED_QUESTIONS = 24
"""Held-out questions for each family that joined after the placement. They are measured in addition to the
curve, which only covers the families that the model began with."""


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """Base of stored records. `KEPT`: fields that only the history has, not the event. `DERIVED`: names in the
    event, and the properties they come from."""

    KEPT: ClassVar[tuple[str, ...]] = ()
    DERIVED: ClassVar[dict[str, str]] = {}

    def all_fields(self) -> dict[str, Any]:
        """Returns all fields and derived values by their public names."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields | {name: getattr(self, own) for name, own in self.DERIVED.items()}

    def event_fields(self) -> dict[str, Any]:
        """Returns the event's fields; its keys are a stable contract."""
        return {name: value for name, value in self.all_fields().items() if name not in self.KEPT}


class Round(Record, frozen=True, kw_only=True, tag="round"):
    """A finished round. `train_solved`: share of right answers among the round's own, which is not the curve
    (the curve is the probe). Shares are in [0, 1]. `seconds`: everything from drawing to saving. `at`: Unix
    time. `loss` and `grad_norm` are None for a round without a step."""

    round: int
    run: int = 0
    at: float = 0.0
    seconds: float
    informative_own: int
    train_solved: float
    own_groups: int = 0
    worked_share: float = 0.0
    finished_share: float = 0.0
    marked_share: float = 0.0
    """Share of answers that have an answer mark, right or wrong."""
    lesson: int = 0
    """Number of right answers taught in this round; if not 0, the round is a lesson and has no groups."""
    imitated: int = 0
    """Number of peers' right answers taught beside the round's groups."""
    lesson_families: tuple[str, ...] = ()
    lesson_from: tuple[str, ...] = ()
    """Families and authors of these answers, or of a lesson of only such in a home of earlier versions."""
    tokens: int = 0
    sample_s: float = 0.0
    score_s: float = 0.0
    step_s: float = 0.0
    loss: float | None = None
    grad_norm: float | None = None
    own_logprob: float | None = None
    families: dict[str, tuple[int, int, int]] = {}
    """(level, solved, answered) by family."""
    peers: dict[str, int] = {}
    """Number of groups that carried weight, or that a lesson taught, by peer."""
    shown: tuple[tuple[str, str, int], ...] = ()
    """(peer, family, level) of each peer group whose right answers carried weight."""
    peer_groups: int = 0
    """Groups taken from peers; `peer_unfit` of them were too long for this model."""
    peer_unfit: int = 0
    gated_right: int = 0
    gated_wrong: int = 0
    """Right and wrong answers of peers that the gates rejected because they are too unlikely under this
    model.
    """
    peer_share: float = 0.0
    """Peers' share of all weight in the batch."""
    mismatch: float | None = None
    """Mean absolute difference of learner and sampler log-prob per token (nats); None if the learner itself
    samples."""
    capped: float | None = None
    """Share of tokens whose importance weight reaches the cap."""

    KEPT = ("run", "at", "sample_s", "score_s", "step_s", "own_logprob", "solved", "answered")
    DERIVED = {
        "informative_peer": "taken",
        "tokens_per_s": "speed",
        "stepped": "stepped",
        "solved": "solved",
        "answered": "answered",
    }

    @property
    def taken(self) -> int:
        """Number of peers' groups trained on."""
        return sum(self.peers.values())

    @property
    def speed(self) -> float:
        """Sampled tokens per second."""
        return self.tokens / max(self.sample_s, 1e-6)

    @property
    def stepped(self) -> bool:
        return self.loss is not None

    @property
    def solved(self) -> int:
        return sum(solved for _, solved, _ in self.families.values())

    @property
    def answered(self) -> int:
        return sum(answered for _, _, answered in self.families.values())

    @property
    def short_phrases(self) -> list[str]:
        """The result of the round in a few short phrases.

        >>> one = Round(round=1, seconds=2.0, informative_own=3, own_groups=4, train_solved=0.25, loss=0.1)
        >>> one.short_phrases
        ['3 of 4 puzzles taught it something', '25 % right']
        """
        if self.lesson and self.lesson_from:
            return [f"a lesson from {self.lesson} right answers of {' and '.join(self.lesson_from[:2])}"]
        if self.lesson:
            return [f"a first lesson from {self.lesson} right answers"]
        own = any(map(is_owners_set, self.families))
        return [
            f"{self.informative_own} of {self.own_groups} {'rows' if own else 'puzzles'} taught it something",
            *([] if self.stepped else ["nothing to learn from"]),
            *(
                [f"{self.taken} more of {len(self.peers)} peer{'s' * (len(self.peers) != 1)}"]
                * bool(self.peers)
            ),
            *([f"learned from {self.imitated} answers of others"] * bool(self.imitated)),
            f"{100 * self.train_solved:.0f} % right",
        ]


class Probe(Record, Score, frozen=True, kw_only=True, tag="probe"):
    """A measurement on held-out questions. `questions_mark` identifies the set of questions: only probes with
    equal marks form a curve. `families`: share solved by family."""

    round: int
    questions_mark: str = ""
    at: float = 0.0
    questions: int = 0
    lenient: float = 0.0
    """Share solved if the last number or line also counts as the answer: what the model can do apart from the
    form."""
    worked_share: float = 0.0
    finished_share: float = 0.0
    seconds: float = 0.0
    families: dict[str, float] = {}
    joined: dict[str, float] = {}
    """Shares of families that joined after the placement, from JOINED_QUESTIONS questions each; not included in
    `share_of_true`."""
    everyday: float | None = None
    """Perplexity of everyday replies (app.node.round.language), now and (`everyday_before`) before the first
    round. None for a model that does not chat."""
    everyday_before: float | None = None

    letters: float | None = None
    """Of a skill's rows: the share that counting letters alone gets right (app.skills.baseline)."""

    KEPT = ("questions_mark", "at")
    DERIVED = {"everyday_rise": "everyday_rise"}

    @property
    def everyday_rise(self) -> float | None:
        """Relative rise of the perplexity since before the first round; None if unknown.

        >>> Probe(round=9, share=0.5, stderr=0.1, everyday=11.0, everyday_before=10.0).everyday_rise
        0.1
        """
        if not self.everyday or not self.everyday_before:
            return None
        return round(self.everyday / self.everyday_before - 1, 4)

    @property
    def subject(self) -> str:
        """What the share is of, as the beginning of a sentence."""
        return (
            "Rows kept aside that are right" if any(map(is_owners_set, self.families)) else "New puzzles solved"
        )

    @classmethod
    def of(cls, score: Score, **fields: Any) -> Self:
        return cls(share=score.share, stderr=score.stderr, **fields)


class GroupRow(msgspec.Struct, frozen=True, kw_only=True):
    """One question with its answers, in a round. `peer`: the author's name for a peer's group. `question`: None
    if only the coordinates are known, as in histories of earlier versions."""

    round: int
    at: float
    coordinates: Coordinates
    rewards_G: tuple[int, ...]
    finished_G: tuple[bool, ...]
    scores_G: tuple[float, ...]
    completions_G: tuple[str, ...]
    peer: str | None = None
    question: str | None = None

    @property
    def family(self) -> str:
        return self.coordinates.family

    @property
    def level(self) -> int:
        return self.coordinates.level


class LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence in the history's log."""

    at: float
    round: int
    kind: str
    sentence: str


class Run(msgspec.Struct, frozen=True, kw_only=True):
    run: int
    started: float
    ended: float | None
    first_round: int
    last_round: int | None
    outcome: str | None
    engine: str


def share_of_true(flags: Iterable[object]) -> float:
    """Returns the share of true values; 0 for no values.

    >>> share_of_true([1, 0, True, False]), share_of_true([])
    (0.5, 0.0)
    """
    values = [bool(flag) for flag in flags]
    return sum(values) / len(values) if values else 0.0


def questions_mark(questions: Sequence[QuestionPrompt]) -> str:
    """Returns eight characters that identify a set of questions: probes with different marks form different
    curves."""
    coordinates = sorted(question.coordinates for question in questions)
    return sha256(msgspec.json.encode(coordinates)).hexdigest()[:8]


class LanguageVerdict(Enum):
    """A measurement of how well everyday language is preserved."""

    KEPT = "kept"
    WORSE = "worse"
    LOST = "lost"


def language_verdict(rise: float) -> LanguageVerdict:
    """Classifies a relative rise of the perplexity.

    >>> language_verdict(0.05).value, language_verdict(0.12).value, language_verdict(0.3).value
    ('kept', 'worse', 'lost')
    """
    return (
        LanguageVerdict.KEPT if rise <= 0.05 else LanguageVerdict.WORSE if rise <= 0.2 else LanguageVerdict.LOST
    )


def language_sentence(rise: float) -> str:
    """Returns a sentence about a relative rise of the perplexity.

    >>> language_sentence(0.012), language_sentence(-0.03)
    ('It speaks as well as before. Everyday replies surprise it 1 % more.', \
'It speaks as well as before. Everyday replies surprise it 3 % less.')
    >>> language_sentence(0.3)
    'It is losing everyday language. Everyday replies surprise it 30 % more.'
    """
    how = {
        LanguageVerdict.KEPT: "It speaks as well as before.",
        LanguageVerdict.WORSE: "It speaks a little worse than before.",
        LanguageVerdict.LOST: "It is losing everyday language.",
    }[language_verdict(rise)]
    if rise < 0:
        return f"{how} Everyday replies surprise it {abs(100 * rise):.0f} % less."
    return f"{how} Everyday replies surprise it {100 * rise:.0f} % more."
