"""The state that a node carries from round to round, beside the adapter. Plain data, saved in every checkpoint.

There is no random state to save: every draw follows from the identity and the round (app.sapo.seeds).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.learning.state import LearningState
from app.node.record.records import GroupRow, Round
from app.sapo.asking import TAGGED, Way


class NodeState(LearningState, frozen=True, kw_only=True):
    """After `round` finished rounds."""

    round: int
    identity: str
    """The first characters of the identity's hash: tells whose rounds these are without giving the identity
    away."""
    completions: int = 0
    tokens: int = 0
    seconds: float = 0.0
    saved_at: float = 0.0
    """Seconds since 1970."""
    way: Way = TAGGED
    """How questions are put."""
    taught: bool = False
    """Lesson zero of the latest placement is behind it."""
    everyday: float | None = None
    """Perplexity of everyday replies before the first round."""
    questions: str = "0.1.25/1"
    """Version of the questions up to here; what was saved before this was noted is of the first ladder."""
    max_tokens: int | None = None
    groups: int | None = None
    rate: float = 1.0
    """Where the node has changed what the settings say, because nothing was gained; `rate` is a factor."""


@dataclass(frozen=True)
class SafeRound:
    """A round that is safe: the state as saved, its folder and what the history says of it."""

    state: NodeState
    folder: Path
    row: Round
    groups: list[GroupRow]
