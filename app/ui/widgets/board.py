"""A puzzle's grid, drawn."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.chat.board import Grid
from app.ui.language.texts import tr
from app.ui.theme import Theme

_LARGEST, _SMALLEST = 28, 7
_HIGHEST = 200
"""Pixels of a cell's side, and of the whole."""


class Board(QWidget):
    """A grid of cells; hidden while there is none."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._grid: Grid = []
        self._side = _LARGEST
        self.setAccessibleName(tr("The puzzle's grid"))
        theme.changed.connect(self.update)
        self.hide()

    def say(self, grid: Grid | None) -> None:
        self._grid = grid or []
        if grid:
            self._side = max(_SMALLEST, min(_LARGEST, _HIGHEST // len(grid)))
            self.setFixedSize(self._side * len(grid[0]) + 1, self._side * len(grid) + 1)
        self.setVisible(bool(grid))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        fills = {
            "wall": self._theme.colour("text_soft"),
            "twice": self._theme.colour("own"),
            "goal": self._theme.colour("own", 0.3),
        }
        font = self.font()
        font.setPixelSize(max(6, self._side * 5 // 9))
        painter.setFont(font)
        for r, row in enumerate(self._grid):
            for c, (sign, look) in enumerate(row):
                place = QRectF(c * self._side + 0.5, r * self._side + 0.5, self._side, self._side)
                painter.setPen(QPen(self._theme.colour("line_strong"), 1))
                painter.setBrush(fills.get(look, self._theme.colour("surface")))
                painter.drawRect(place)
                painter.setPen(self._theme.colour("text"))
                painter.drawText(place, Qt.AlignmentFlag.AlignCenter, sign)
        painter.end()
