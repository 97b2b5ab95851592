"""Rows of the history. A round and a probe are each one record: what the history keeps, what `--json` tells,
and what every view shows. A figure is declared here and measured in app.node.round.keeping or
app.node.round.probing. And the words for what everyday language does meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from hashlib import sha256
from typing import Any, ClassVar, Self

import msgspec

from app.sapo.probe import Score
from app.sapo.questions import Coordinates, QuestionPrompt

JOINED_QUESTIONS = 24
"""Held-out questions of each family that joined after the placement: they are measured beside the curve, which
stays with the families that it began with."""


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """`KEPT` names the fields that only the history has; `DERIVED` maps a name in the event to the property it
    is taken from."""

    KEPT: ClassVar[tuple[str, ...]] = ()
    DERIVED: ClassVar[dict[str, str]] = {}

    def whole(self) -> dict[str, Any]:
        """Every figure by its name outside."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields | {name: getattr(self, own) for name, own in self.DERIVED.items()}

    def told(self) -> dict[str, Any]:
        """The event, whose keys are a contract."""
        return {name: value for name, value in self.whole().items() if name not in self.KEPT}


class Round(Record, frozen=True, kw_only=True, tag="round"):
    """A finished round. `train_solved` is the share of right answers among this round's own, which is not the
    curve: the curve is the probe. Shares are in [0, 1]; `seconds` include everything from drawing to saving;
    `at` is since 1970; `loss` and `grad_norm` are None for a round without a step."""

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
    """Answers that have one of the marks, right or wrong."""
    lesson: int = 0
    """Right answers that were taught in this round; then it is a lesson and has no groups."""
    lesson_families: tuple[str, ...] = ()
    lesson_from: tuple[str, ...] = ()
    """Of a peer lesson: its families, and the authors of its answers. Else it taught own answers."""
    tokens: int = 0
    sample_s: float = 0.0
    score_s: float = 0.0
    step_s: float = 0.0
    loss: float | None = None
    grad_norm: float | None = None
    own_logprob: float | None = None
    families: dict[str, tuple[int, int, int]] = {}
    """Family to (level, solved, answered)."""
    peers: dict[str, int] = {}
    """Peer to groups that carried weight."""
    shown: tuple[tuple[str, str, int], ...] = ()
    """(peer, family, level) of each of those whose right answers carried weight: what this round was shown."""
    peer_groups: int = 0
    """Taken from peers, of which `peer_unfit` were too long for this model."""
    peer_unfit: int = 0
    gated_right: int = 0
    gated_wrong: int = 0
    """Peers' answers kept out because this model would hardly have written them."""
    peer_share: float = 0.0
    """Peers' share of all weight in the batch."""
    mismatch: float | None = None
    """Mean |learner's - sampler's| log-prob of a token (nats); None where the learner itself samples."""
    capped: float | None = None
    """Share of those tokens whose importance weight is at its cap."""

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
        """Peers' groups trained on."""
        return sum(self.peers.values())

    @property
    def speed(self) -> float:
        """Tokens a second while sampling."""
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
    def gist(self) -> list[str]:
        """What came of it, in a few words each.

        >>> Round(round=1, seconds=2.0, informative_own=3, own_groups=4, train_solved=0.25, loss=0.1).gist
        ['3 of 4 puzzles taught it something', '25 % right']
        """
        if self.lesson and self.lesson_from:
            return [f"a lesson from {self.lesson} right answers of {' and '.join(self.lesson_from[:2])}"]
        if self.lesson:
            return [f"a first lesson from {self.lesson} right answers"]
        return [
            f"{self.informative_own} of {self.own_groups} puzzles taught it something",
            *([] if self.stepped else ["nothing to learn from"]),
            *(
                [f"{self.taken} more of {len(self.peers)} peer{'s' * (len(self.peers) != 1)}"]
                * bool(self.peers)
            ),
            f"{100 * self.train_solved:.0f} % right",
        ]


class Probe(Record, Score, frozen=True, kw_only=True, tag="probe"):
    """A measurement on held-out questions. `questions_mark` tells probes over different questions apart: only
    equal marks make one curve. `families` has each family's own share."""

    round: int
    questions_mark: str = ""
    at: float = 0.0
    questions: int = 0
    lenient: float = 0.0
    """Share solved where the last number or line counts too: what it can do but not yet put into form."""
    worked_share: float = 0.0
    finished_share: float = 0.0
    seconds: float = 0.0
    families: dict[str, float] = {}
    joined: dict[str, float] = {}
    """Shares of families that joined since the placement, JOINED_QUESTIONS each; they are not in `share`."""
    everyday: float | None = None
    """Perplexity of everyday replies (app.node.round.language), None for a model that does not talk; and what
    it was before the first round."""
    everyday_before: float | None = None

    KEPT = ("questions_mark", "at")
    DERIVED = {"everyday_rise": "everyday_rise"}

    @property
    def everyday_rise(self) -> float | None:
        """As a share of what it was; 0 where nothing was learned yet.

        >>> Probe(round=9, share=0.5, stderr=0.1, everyday=11.0, everyday_before=10.0).everyday_rise
        0.1
        """
        if not self.everyday or not self.everyday_before:
            return None
        return round(self.everyday / self.everyday_before - 1, 4)

    @classmethod
    def of(cls, score: Score, **fields: Any) -> Self:
        return cls(share=score.share, stderr=score.stderr, **fields)


class GroupRow(msgspec.Struct, frozen=True, kw_only=True):
    """One question with its answers, in a round. `peer` is the author's name of a peer's group; `question` is
    None where only the coordinates are known, as in histories of earlier versions."""

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
    """A sentence of the history's log."""

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


def share(flags: Iterable[object]) -> float:
    """Share of true ones, 0 of none.

    >>> share([1, 0, True, False]), share([])
    (0.5, 0.0)
    """
    values = [bool(flag) for flag in flags]
    return sum(values) / len(values) if values else 0.0


def questions_mark(questions: Sequence[QuestionPrompt]) -> str:
    """Eight characters that change with the set of questions: probes over other questions are another curve."""
    coordinates = sorted(question.coordinates for question in questions)
    return sha256(msgspec.json.encode(coordinates)).hexdigest()[:8]


class Speech(Enum):
    """How everyday language fared."""

    KEPT = "kept"
    WORSE = "worse"
    LOST = "lost"


def speech(rise: float) -> Speech:
    """What a rise of perplexity means, as a share of what it was.

    >>> speech(0.05).value, speech(0.12).value, speech(0.3).value
    ('kept', 'worse', 'lost')
    """
    return Speech.KEPT if rise <= 0.05 else Speech.WORSE if rise <= 0.2 else Speech.LOST


def speech_sentence(rise: float) -> str:
    """What a rise of the perplexity, as a share, means for people.

    >>> speech_sentence(0.012), speech_sentence(-0.03)
    ('It speaks as well as before. Everyday replies surprise it 1 % more.', \
'It speaks as well as before. Everyday replies surprise it 3 % less.')
    >>> speech_sentence(0.3)
    'It is losing everyday language. Everyday replies surprise it 30 % more.'
    """
    how = {
        Speech.KEPT: "It speaks as well as before.",
        Speech.WORSE: "It speaks a little worse than before.",
        Speech.LOST: "It is losing everyday language.",
    }[speech(rise)]
    if rise < 0:
        return f"{how} Everyday replies surprise it {abs(100 * rise):.0f} % less."
    return f"{how} Everyday replies surprise it {100 * rise:.0f} % more."
