"""Rows of the history, as data. What people look up by has a column; the rest is in `details`."""

from __future__ import annotations

from typing import Literal

import msgspec

from app.sapo.questions import Coordinates


class RoundDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one round. Shares are in [0, 1]; `loss` and `grad_norm` are None for a round without a
    step."""

    own_groups: int
    worked_share: float
    finished_share: float
    tokens: int
    tokens_per_s: float
    sample_s: float
    score_s: float
    step_s: float
    loss: float | None
    grad_norm: float | None
    own_logprob: float | None
    families: dict[str, tuple[int, int, int]]
    """Family to (level, solved, answered)."""
    peer_groups: int = 0
    """Taken this round; `informative_peer` of them carried weight."""
    peers: dict[str, int] = {}
    """Peer to groups that carried weight."""
    peer_unfit: int = 0
    """Left out: too long for this model."""
    gated_right: int = 0
    gated_wrong: int = 0
    """Peers' answers kept out because this model would hardly have written them."""
    peer_share: float = 0.0
    """Peers' share of all weight in the batch."""
    mismatch: float | None = None
    """Mean |learner's - sampler's| log-prob of a token (nats); None where the learner itself samples."""
    capped: float | None = None
    """Share of those tokens whose importance weight is at its cap."""


class RoundRow(msgspec.Struct, frozen=True, kw_only=True):
    round: int
    run: int
    at: float
    seconds: float
    informative_own: int
    informative_peer: int
    train_solved: float
    details: RoundDetails


class GroupRow(msgspec.Struct, frozen=True, kw_only=True):
    source: Literal["own", "peer"]
    coordinates: Coordinates
    rewards_G: tuple[int, ...]
    finished_G: tuple[bool, ...]
    scores_G: tuple[float, ...]
    completions_G: tuple[str, ...]
    peer: str | None = None
    """The author's name of a peer's group."""


class ProbeDetails(msgspec.Struct, frozen=True, kw_only=True):
    worked_share: float
    finished_share: float
    seconds: float
    families: dict[str, float]
    """Family to its own pass@1."""


class ProbeRow(msgspec.Struct, frozen=True, kw_only=True):
    """`questions_mark` tells probes over different questions apart: only equal marks make one curve."""

    round: int
    questions_mark: str
    at: float
    questions: int
    pass_at_1: float
    stderr: float
    details: ProbeDetails


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    at: float
    round: int
    kind: str
    sentence: str
