"""What a node carries from round to round, beside the adapter. Plain data, saved in every checkpoint.

There is no random state to save: every draw follows from the identity and the round (app.sapo.seeds).
"""

from __future__ import annotations

import msgspec

from app.sapo.curriculum import Curriculum
from app.sapo.defences import Habits


class State(msgspec.Struct, frozen=True, kw_only=True):
    """After `round` finished rounds. `own_logprob` is the running mean of own completions' token log-prob
    (nats)."""

    round: int
    curriculum: Curriculum
    own_logprob: float | None = None
    habits: Habits | None = None
    """What own answers are like, against which peers' are held."""
    identity: str
    """The first characters of the identity's hash: tells whose rounds these are without giving the identity
    away."""
    completions: int = 0
    tokens: int = 0
    steps: int = 0
    seconds: float = 0.0
    saved_at: float = 0.0
    """Seconds since 1970."""
