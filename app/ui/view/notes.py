"""Which gentle note the overview has, if any: one at a time, none twice, and none that comes late. Pure."""

from __future__ import annotations

from typing import Any, Protocol

from app.learning import flat
from app.node.history.milestones import Milestone
from app.ui.view.seen import PutAway
from app.ui.view.view import View

RACE_AT, RACE_UNTIL = 20, 60
"""Rounds between which a new model's race is offered."""
FRESH_S = 24 * 3600.0
"""A milestone is told for so long."""
AGAIN = 200
"""Rounds after which "what next" is asked again, where the curve is still flat."""


class Chosen(Protocol):
    """The settings, by key."""

    def __getitem__(self, key: str) -> Any: ...


def model(view: View) -> str:
    """Tells models apart, and one that started over from what it was."""
    return f"{view.model}/{view.runs[0].started:.0f}" if view.runs else view.model


def race_due(view: View, seen: PutAway, choices: Chosen) -> bool:
    last = view.rounds[-1].round if view.rounds else 0
    return bool(choices["race"]) and RACE_AT <= last < RACE_UNTIL and seen.raced != model(view)


def milestone(view: View, seen: PutAway, choices: Chosen, now: float) -> Milestone | None:
    """The latest that was not told yet."""
    last = view.milestones[-1] if view.milestones and choices["notes"] else None
    return last if last is not None and seen.told < last.at and now - last.at < FRESH_S else None


def next_due(view: View, seen: PutAway, choices: Chosen) -> bool:
    """Whether the curve has been flat, and that was not put away lately."""
    if not choices["notes"] or not flat.levelled(view.curve):
        return False
    last = view.curve[-1].round
    return seen.next_of != model(view) or last >= seen.next_at + AGAIN
