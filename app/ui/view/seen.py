"""The notes that the owner has put away, kept in the window's memory."""

from __future__ import annotations

import msgspec


class PutAway(msgspec.Struct, frozen=True, kw_only=True):
    """What was put away: the model whose race was offered, when the last milestone told was reached, and the
    model and round at which "what next" was."""

    raced: str = ""
    told: float = 0.0
    next_of: str = ""
    next_at: int = 0
