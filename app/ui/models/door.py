"""The switch on the page Models that opens the model to other programs on this computer, and the address, token
and name that they need."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.ui.frame.frame import Actions
from app.ui.language.texts import tr
from app.ui.theme import Theme
from app.ui.view.view import Holdings, ServedDoor
from app.ui.widgets.pieces import Card, CopyButton, Elided, Label, boxed, button, column, row, rule
from app.ui.widgets.selecting import Switch

_SHOWN = 9
"""Characters of the token that are visible."""


class DoorCard(Card):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__()
        self._door: ServedDoor | None = None
        self._switch = Switch(theme, tr("Use it in other programs"))
        self._switch.toggled.connect(actions.models.serve)
        self._why = Label("", "soft", wrap=True)
        self._problem = Label("", "bad", wrap=True)
        title = column(Label(self._switch.accessibleName(), "heading"), self._why, gap=4)
        self._address, self._token, self._name = (Elided("", "strong") for _ in range(3))
        copies = [
            (tr("Address"), self._address, CopyButton(theme, tr("Copy address"), lambda: self._part("url"))),
            (tr("Token"), self._token, CopyButton(theme, tr("Copy token"), lambda: self._part("token"))),
            (tr("Model"), self._name, CopyButton(theme, tr("Copy name"), lambda: self._part("model"))),
        ]
        lines: list[QWidget] = []
        for what, value, copy in copies:
            name = Label(what, "soft")
            name.setMinimumWidth(80)
            lines.append(boxed(row(name, value, copy, gap=12, fill=1)))
        paste = tr(
            "Paste these where a program asks for an “OpenAI-compatible” address. The name “puzzles” asks "
            "what your model has learned."
        )
        how = Label(paste, "soft", wrap=True)
        where = button(tr("How, for each program"), lambda: actions.show_help("programs"), "flat")
        self._open = boxed(column(rule(), *lines, boxed(row(how, where, gap=12, fill=0)), gap=10))
        head = row(title, self._switch, gap=24, fill=0)
        self.setLayout(column(head, self._problem, self._open, gap=12, margins=(20, 16, 20, 16)))
        self.show_holdings(Holdings(chosen=""))

    def show_holdings(self, holdings: Holdings) -> None:
        self._door = door = holdings.door
        self._switch.show_on(door is not None or holdings.door_opening)
        off = tr("Off. Turn on to chat with your model in other programs on this computer.")
        self._why.say(
            tr("Programs on this computer can ask your model. Learning pauses while it answers.")
            if door is not None
            else tr("Opening …")
            if holdings.door_opening
            else off
        )
        self._problem.tell(holdings.door_problem)
        self._open.setVisible(door is not None)
        if door is not None:
            self._address.say(door.url)
            self._token.say(door.token[:_SHOWN] + "…")
            self._name.say(self._part("model"))

    def _part(self, name: str) -> str:
        return str(getattr(self._door, name)) if self._door is not None else ""
