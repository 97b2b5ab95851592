"""The model's fish on the overview: as long as the share of new puzzles that the model solves."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy

from app.ui.language.texts import number, tr
from app.ui.theme import Theme
from app.ui.theme.theme import drawn
from app.ui.view import words
from app.ui.view.view import View
from app.ui.widgets.pieces import antialiased_painter

_WIDE, _HIGH = 172, 62
_SHORTEST, _LONGEST = 39, 92
"""Pixels of a fish whose model solves nothing, and of one whose model solves everything."""


class Fish(QAbstractButton):
    """The fish in its water; a button that leads to what the model can do."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme, self._length = theme, _SHORTEST
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(_WIDE, _HIGH)

    def show_view(self, view: View) -> None:
        name, said = words.model_name(view), describe(view)
        self.setToolTip(said)
        self.setAccessibleName(tr("The fish of {name}", name=name) if name else tr("Your model's fish"))
        self.setAccessibleDescription(said)
        self._length = fish_length(view.curve[-1].share if view.curve else 0.0)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = antialiased_painter(self)
        room = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        painter.setPen(QPen(self._theme.colour("accent"), 1.5) if self.hasFocus() else Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour("accent_soft", 0.6))
        painter.drawRoundedRect(room, 14, 14)
        high = round(0.6 * self._length)
        fish = drawn("fish", self._theme.palette.own, self._length, high, self.devicePixelRatioF())
        painter.drawPixmap((self.width() - self._length) // 2, (self.height() - high) // 2, fish)
        painter.end()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)


def fish_length(share: float) -> int:
    """Returns the length in pixels of the fish of a model that solves this share of new puzzles.

    >>> fish_length(0.0), fish_length(0.5), fish_length(1.0)
    (39, 66, 92)
    """
    return round(_SHORTEST + (_LONGEST - _SHORTEST) * share)


def describe(view: View) -> str:
    if not view.curve:
        return tr("A small fish. It grows once your model has been measured.")
    share = number(100 * view.curve[-1].share)
    if view.skill:
        return tr("It is as long as your model is good: {n} of 100 rows kept aside.", n=share)
    return tr("It is as long as your model is good: {n} of 100 new puzzles.", n=share)
