"""The race: the same new puzzles to the model as it came and as it is now, one answer each.

The puzzles are held out, so neither side ever trained on them, and both sides draw with the same seed: what
differs is what was learned, and chance, as far as the error says."""

from __future__ import annotations

import math

import msgspec

PUZZLES = 20
MOST = 100
AT_ONCE = 5
"""Puzzles answered in one go: more go faster, fewer are seen sooner."""
_CHANCE = 0.05


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a race comes to. `won` puzzles only the model as it is now solved, `lost` only the one before."""

    puzzles: int = 0
    before: int = 0
    after: int = 0
    won: int = 0
    lost: int = 0

    def plus(self, before: bool, after: bool) -> Result:
        """With one more puzzle.

        >>> Result().plus(False, True).plus(True, True)
        Result(puzzles=2, before=1, after=2, won=1, lost=0)
        """
        return Result(
            puzzles=self.puzzles + 1,
            before=self.before + before,
            after=self.after + after,
            won=self.won + (after and not before),
            lost=self.lost + (before and not after),
        )

    @property
    def lead(self) -> int:
        """Puzzles that it solves more of than before."""
        return self.after - self.before

    @property
    def error(self) -> float:
        """Standard error of the lead, in puzzles: that of a sum of paired differences.

        >>> round(Result(puzzles=20, before=4, after=10, won=7, lost=1).error, 2)
        2.49
        """
        return math.sqrt(max(0.0, self.won + self.lost - self.lead**2 / max(1, self.puzzles)))

    @property
    def chance(self) -> float:
        """How often two equal models would be at least so far apart: the exact sign test, two-sided.

        >>> Result(won=6, lost=0).chance, Result(won=3, lost=3).chance
        (0.03125, 1.0)
        """
        apart, least = self.won + self.lost, min(self.won, self.lost)
        tail = sum(math.comb(apart, k) for k in range(least + 1)) / 2**apart
        return min(1.0, 2 * tail)

    @property
    def sure(self) -> bool:
        """Whether chance alone hardly explains the lead."""
        return self.chance <= _CHANCE
