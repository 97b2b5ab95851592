"""One short line beside the overview's title: a milestone, or the first race. One at a time, none twice, none
late. It moves nothing else, takes no focus, and can be dismissed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from PySide6.QtWidgets import QFrame

from app.learning import flat
from app.node.history.milestones import Milestone
from app.ui.frame.frame import Actions
from app.ui.frame.milestone_words import open_, told
from app.ui.language.texts import tr
from app.ui.theme import Theme
from app.ui.view.settings import PutAway
from app.ui.view.view import View
from app.ui.widgets.pieces import Elided, IconButton, button, row

RACE_AT, RACE_UNTIL = 20, 60
"""Rounds between which a new model's race is offered."""
FRESH_S = 24 * 3600.0
"""Seconds during which a milestone may be announced."""
AGAIN = 200
"""Rounds after which "what next" is asked again, if the curve is still flat."""


class Chosen(Protocol):
    """The window's settings, by key."""

    def __getitem__(self, key: str) -> Any: ...


def model(view: View) -> str:
    """Identifies a model; one that was started over counts as another."""
    return f"{view.model}/{view.runs[0].started:.0f}" if view.runs else view.model


def race_due(view: View, seen: PutAway, choices: Chosen) -> bool:
    last = view.rounds[-1].round if view.rounds else 0
    return bool(choices["race"]) and RACE_AT <= last < RACE_UNTIL and seen.raced != model(view)


def milestone(view: View, seen: PutAway, choices: Chosen, now: float) -> Milestone | None:
    """The latest milestone that was not announced yet."""
    last = view.milestones[-1] if view.milestones and choices["notes"] else None
    return last if last is not None and seen.told < last.at and now - last.at < FRESH_S else None


def next_due(view: View, seen: PutAway, choices: Chosen) -> bool:
    """Whether the curve is flat and the question "what next" was not dismissed lately."""
    if not choices["notes"] or not flat.levelled(view.curve):
        return False
    last = view.curve[-1].round
    return seen.next_of != model(view) or last >= seen.next_at + AGAIN


_LEAST = 90
"""Minimum pixels of text."""


class NoteLine(QFrame):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__()
        self.setProperty("look", "quiet")
        self._actions, self._view = actions, View()
        self._milestone: Milestone | None = None
        self._due = False
        self._said = Elided("", "strong")
        self._act = button("", self._do, "flat")
        self._away = IconButton(theme, "cross", tr("Put this away"))
        self._away.clicked.connect(self._put_away)
        self.setLayout(row(self._said, self._act, self._away, gap=8, margins=(12, 0, 2, 0), fill=0))
        self.setMaximumHeight(36)
        self.hide()

    def fit(self, room: int) -> None:
        """Fits it into this many pixels; if they are too few, the note is only in the diary."""
        text = self._said.fontMetrics().horizontalAdvance(self._said.text())
        beside = self._act.sizeHint().width() + self._away.sizeHint().width() + 34
        self.setFixedWidth(max(1, min(room, text + beside)))
        self.setVisible(self._due and room >= beside + _LEAST)

    def show_view(self, view: View, now: float, quiet: bool = False) -> None:
        """`quiet`: the page already asks something else."""
        self._view = view
        seen, choices = self._actions.choices.memory.seen, self._actions.choices
        race = not quiet and race_due(view, seen, choices)
        self._milestone = None if race or quiet else milestone(view, seen, choices, now)
        self._due = race or self._milestone is not None
        self.setVisible(self._due)
        if race:
            self._say(
                tr("Twenty rounds learned. Is it better than it was? Let both race."), tr("Watch the race")
            )
        elif self._milestone is not None:
            self._say(told(self._milestone), tr("See the answers"))

    def _say(self, sentence: str, act: str) -> None:
        self._said.say(sentence)
        self._act.setText(act)
        self.setAccessibleName(sentence)

    def _do(self) -> None:
        one = self._milestone
        act: Callable[[], None] = self._actions.race if one is None else lambda: open_(one, self._actions)
        self._put_away()
        act()

    def _put_away(self) -> None:
        if self._milestone is None:
            remember(self._actions, raced=model(self._view))
        else:
            remember(self._actions, told=self._milestone.at)
        self._due = False
        self.hide()


def remember(actions: Actions, **fields: object) -> None:
    """Saves that a note was dismissed, if the disk allows."""
    memory = actions.choices.memory
    with contextlib.suppress(OSError):
        actions.choices.remember(seen=msgspec.structs.replace(memory.seen, **fields))
