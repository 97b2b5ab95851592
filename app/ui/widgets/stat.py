"""A figure with its name above and what it means below."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QSizePolicy

from app.ui.widgets.pieces import Elided, Label, column


class Stat(QFrame):
    def __init__(self) -> None:
        super().__init__()
        self.setProperty("look", "card")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self.setMinimumWidth(150)
        self._name, self._figure, self._meaning = (
            Label("", "caption", wrap=True),
            Elided("", "figure"),
            Elided("", "faint"),
        )
        self._figure.setMinimumHeight(32)
        self._meaning.setMinimumHeight(17)
        self.setLayout(column(self._name, self._figure, self._meaning, gap=3, margins=(18, 14, 18, 14)))

    def say(self, name: str, figure: str, meaning: str) -> None:
        self._name.say(name)
        self._figure.say(figure)
        self._meaning.say(meaning)
        self.setAccessibleName(f"{name}: {figure}, {meaning}")
