"""Diagnoses a flat learning curve: finds the main cause over the last rounds.

GRPO learns only from groups with both right and wrong answers. When few groups are mixed, the answers show why:
too easy, too hard, cut off at the token limit, or without the requested form. `app.node.healing` applies the
remedy. Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from app.learning.evidence import SURE, odds_above
from app.sapo.probe import Score

ROUNDS_JUDGED = 4
"""Number of rounds judged together: fewer are too noisy, more would make the owner wait."""
TAUGHT_NOTHING_SHARE = 0.1
"""A run of rounds counts as having taught nothing if at most this share of its groups is informative."""
MAX_TOKENS = 512
MAX_GROUPS = 32
_RIGHT, _WRONG = 0.9, 0.02  # nearly all right: too easy; nearly none: too hard
_ENDS, _MARKED = 0.5, 0.25  # shares below which an answer counts as mostly unfinished or without its mark
_TORN = 0.05


class FlatCause(Enum):
    """A cause of missing progress; the value is its name in `--json`."""

    UNFINISHED = "unfinished"
    FORMLESS = "formless"
    FAILING = "failing"
    PASSING = "passing"
    ALIKE = "alike"
    TORN = "torn"
    SPOILED = "spoiled"


class RoundFigures(Protocol):
    """The figures of a round (`app.node.record.records.Round`) from which a cause is found: counts of right
    answers and of all answers at the families' own levels, and shares of the round's own answers.
    `marked_share`: the share with the requested answer mark."""

    @property
    def own_groups(self) -> int: ...
    @property
    def informative_own(self) -> int: ...
    @property
    def solved(self) -> int: ...
    @property
    def answered(self) -> int: ...
    @property
    def finished_share(self) -> float: ...
    @property
    def marked_share(self) -> float: ...


def find_cause(rounds: Sequence[RoundFigures]) -> FlatCause | None:
    """Returns why the last ROUNDS_JUDGED rounds taught almost nothing. None if they did teach something, or if
    there are too few rounds to tell."""
    last = [one for one in rounds if one.own_groups][-ROUNDS_JUDGED:]
    groups = sum(one.own_groups for one in last)
    if len(last) < ROUNDS_JUDGED or sum(one.informative_own for one in last) > TAUGHT_NOTHING_SHARE * groups:
        return None

    def mean(shares: Sequence[float]) -> float:
        return sum(shares) / len(shares)

    solved = sum(one.solved for one in last) / max(1, sum(one.answered for one in last))
    if solved >= _RIGHT:
        return FlatCause.PASSING
    if mean([one.marked_share for one in last]) < _MARKED:
        return FlatCause.FORMLESS  # before the next: an answer that never ends lacks the form too
    if mean([one.finished_share for one in last]) < _ENDS:
        return FlatCause.UNFINISHED
    return FlatCause.FAILING if solved <= _WRONG else FlatCause.ALIKE


def has_collapsed(curve: Sequence[Score]) -> bool:
    """Whether the latest measurement is certainly below the best one before it, by more than _TORN.

    >>> has_collapsed([Score(share=0.5, stderr=0.03), Score(share=0.3, stderr=0.03)])
    True
    >>> has_collapsed([Score(share=0.5, stderr=0.06), Score(share=0.4, stderr=0.06)])
    False
    """
    if len(curve) < 2:
        return False
    latest, best = curve[-1], max(curve[:-1], key=lambda one: one.share)
    return odds_above(best.share - latest.share, math.hypot(latest.stderr, best.stderr), _TORN) >= SURE


def one_level_lower(levels: dict[str, int]) -> dict[str, int]:
    """Returns the levels with every family one level lower, at least 0.

    >>> one_level_lower({"gcd": 2, "lcm": 0})
    {'gcd': 1, 'lcm': 0}
    """
    return {family: max(0, level - 1) for family, level in levels.items()}
