"""A figure with its name above and what it means below."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QSizePolicy

from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import Elided, Label, column, row

GAP, NARROW = 16, 700


class Stat(QFrame):
    def __init__(self) -> None:
        super().__init__()
        self.setProperty("look", "card")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(150)
        self._name, self._figure, self._meaning = (
            Label("", "caption"),
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


def stats_row(*stats: Stat) -> Bend:
    """Four beside each other, or two above two where there is less room."""
    half = len(stats) // 2
    return Bend(row(*stats[:half], gap=GAP), row(*stats[half:], gap=GAP), gap=GAP, least=NARROW)
