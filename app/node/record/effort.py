"""The dial Quiet, Balanced, Full: how much of the computer a running node takes."""

from __future__ import annotations

from enum import Enum

import msgspec


class Dial(Enum):
    QUIET = "quiet"
    BALANCED = "balanced"
    FULL = "full"


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How hard the trainer may work. It changes only the speed, never what is learned."""

    rest: float
    """Seconds to rest for every second of work, taken between steps: 1 halves heat and noise."""
    thread_share: float
    """Share of the cores."""
    batch_share: float
    """Share of the measured budget of tokens at once, and with it of memory."""

    def rest_s(self, worked_s: float) -> float:
        """Seconds to rest after `worked_s` seconds of work, at most as long as the owner would wait for a
        stop."""
        return min(5.0, self.rest * max(0.0, worked_s))


EFFORTS: dict[Dial, Effort] = {
    Dial.QUIET: Effort(rest=1.0, thread_share=0.25, batch_share=0.5),
    Dial.BALANCED: Effort(rest=0.25, thread_share=0.5, batch_share=1.0),
    Dial.FULL: Effort(rest=0.0, thread_share=1.0, batch_share=1.0),
}
