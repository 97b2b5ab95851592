"""How many tokens this process has read, sampled and learned: what tells a slow engine from a dead one.

Engines add tokens here as they work: after each call of the sampler, after each micro-batch of the learner.
Anyone who needs to know sets `heard`, which is called in the thread that computes, at most once in EVERY_S.
"""

from __future__ import annotations

import time
from collections.abc import Callable

EVERY_S = 1.0
"""Minimum seconds between two calls of `heard`."""


class Progress:
    """`tokens` counts everything so far."""

    def __init__(self) -> None:
        self.tokens = 0
        self.heard: Callable[[int], None] | None = None
        self._told = 0.0

    def add(self, tokens: int) -> None:
        """Adds tokens, and calls `heard` if it is time."""
        self.tokens += tokens
        if self.heard is not None and time.monotonic() >= self._told + EVERY_S:
            self._told = time.monotonic()
            self.heard(self.tokens)


progress = Progress()
"""The counter of this process."""
