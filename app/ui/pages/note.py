"""One gentle line on the overview: a milestone, or the first race. It can be put away, and takes no focus."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import msgspec
from PySide6.QtWidgets import QFrame

from app.node.milestones import Milestone
from app.ui import notes
from app.ui.model import View
from app.ui.pages.frame import Actions
from app.ui.pages.milestone_words import open_, told
from app.ui.texts import tr
from app.ui.theme import Theme
from app.ui.widgets.pieces import Elided, IconButton, button, row


class NoteLine(QFrame):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__()
        self.setProperty("look", "quiet")
        self._actions, self._view = actions, View()
        self._milestone: Milestone | None = None
        self._said = Elided("", "strong")
        self._act = button("", self._do)
        self._away = IconButton(theme, "cross", tr("Put this away"))
        self._away.clicked.connect(self._put_away)
        self.setLayout(row(self._said, self._act, self._away, gap=8, margins=(16, 8, 8, 8), fill=0))
        self.hide()

    def show_view(self, view: View, now: float) -> None:
        self._view = view
        seen, choices = self._actions.choices.memory.seen, self._actions.choices
        race = notes.race_due(view, seen, choices)
        self._milestone = None if race else notes.milestone(view, seen, choices, now)
        self.setVisible(race or self._milestone is not None)
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
            remember(self._actions, raced=notes.model(self._view))
        else:
            remember(self._actions, told=self._milestone.at)
        self.hide()


def remember(actions: Actions, **fields: object) -> None:
    """A note that was put away stays away, as far as that can be saved."""
    memory = actions.choices.memory
    with contextlib.suppress(OSError):
        actions.choices.remember(seen=msgspec.structs.replace(memory.seen, **fields))
