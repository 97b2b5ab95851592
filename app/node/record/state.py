"""The state that a node carries from round to round, apart from the adapter. Plain data, saved in every
checkpoint. It contains no random state: every draw is derived from the identity and the round
(app.sapo.seeds)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.learning.imitation import FamilyTaught
from app.learning.round_weights import LearningState
from app.learning.skill_lesson import LessonProgress, Practice
from app.node.record.records import GroupRow, Round
from app.sapo.asking import TAGGED, Way


class NodeState(LearningState, frozen=True, kw_only=True):
    """The state after `round` finished rounds."""

    round: int
    identity: str
    """First characters of the identity's hash: they tell whose rounds these are without revealing the
    identity.
    """
    completions: int = 0
    tokens: int = 0
    seconds: float = 0.0
    saved_at: float = 0.0
    """Seconds since 1970."""
    way: Way = TAGGED
    """Prompt style for this model."""
    taught: bool = False
    """Whether the first lesson of the latest placement is done."""
    everyday: float | None = None
    """Perplexity of everyday replies before the first round."""
    questions: str = "0.1.25/1"
    """Version of the questions; states saved before this field existed used the first one."""
    imitated: dict[str, FamilyTaught] = msgspec.field(default_factory=dict)
    """What is known of the families in which peers' answers were imitated."""
    lesson: LessonProgress = LessonProgress()
    practice: Practice = Practice()
    """How far a skill's lesson is, and what the rounds after it bring."""
    max_tokens: int | None = None
    groups: int | None = None
    rate: float = 1.0
    """`max_tokens`, `groups`: values that replace the settings after progress stalled. `rate`: factor on the
    learning rate."""


@dataclass(frozen=True)
class SafeRound:
    """A saved round: the state as saved, its checkpoint folder, and what the history records of it."""

    state: NodeState
    folder: Path
    row: Round
    groups: list[GroupRow]
