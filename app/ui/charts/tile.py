"""A tile with the state of one puzzle family: the share solved and its uncertainty, its level, and since
when."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QGridLayout, QPushButton, QSizePolicy, QWidget

from app.node.record.snapshot import FamilyView
from app.sapo.probe import wilson
from app.ui.language.texts import counted, percent, tr
from app.ui.theme import Theme
from app.ui.widgets.pieces import Label, antialiased_painter, column, row


class Band(QWidget):
    """A track from 0 to 100 %: the value, the interval around it, and a tick at the first value."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._value: tuple[float, float, float, float] | None = None
        self.setFixedHeight(16)
        theme.changed.connect(self.update)

    def say(self, value: float | None, low: float, high: float, first: float | None) -> None:
        self._value = None if value is None else (value, low, high, value if first is None else first)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = antialiased_painter(self)
        painter.setPen(Qt.PenStyle.NoPen)
        width, middle = self.width(), self.height() / 2
        painter.setBrush(self._theme.colour("sunken"))
        painter.drawRoundedRect(QRectF(0, middle - 3, width, 6), 3, 3)
        if self._value is not None:
            value, low, high, first = self._value
            painter.setBrush(self._theme.colour("own", 0.28))
            painter.drawRoundedRect(QRectF(low * width, middle - 3, max(3, (high - low) * width), 6), 3, 3)
            painter.setBrush(self._theme.colour("text_faint"))
            painter.drawRoundedRect(QRectF(min(width - 2, first * width), middle - 6, 2, 12), 1, 1)
            painter.setBrush(self._theme.colour("own"))
            painter.drawEllipse(QPointF(min(max(value * width, 5), width - 5), middle), 5, 5)
        painter.end()


class Tile(QPushButton):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("look", "tile")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setToolTip(tr("Show its answers"))
        self.press: Callable[[], object] = lambda: None
        self.clicked.connect(lambda: self.press())
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._title, self._level = Label("", "strong", wrap=True), Label("", "faint")
        self._level.setToolTip(tr("Levels get harder as it learns."))
        self._band = Band(theme)
        self._figure, self._change = Label("", "figure"), Label("", "faint")
        self._sure, self._since, self._guessed = (Label("", "faint", wrap=True) for _ in range(3))
        head = column(self._title, self._level, gap=2)
        figures = row(self._figure, self._change, 1, gap=8)
        below = column(self._sure, self._since, self._guessed, gap=2)
        self._inside = column(head, figures, self._band, below, 1, gap=10, margins=(18, 16, 18, 14))
        self.setLayout(self._inside)

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint().expandedTo(QSize(0, self._inside.sizeHint().height()))

    def minimumSizeHint(self) -> QSize:
        return self._inside.minimumSize()

    def say(self, family: FamilyView, since: str, guessed: str = "") -> None:
        self._title.say(tr(family.title))
        level = tr("Level {n} of {all}", n=family.level + 1, all=family.levels)
        self._level.say(level)
        self._since.tell(since)
        self._guessed.tell(guessed)
        self.updateGeometry()
        if family.latest is None:
            self._figure.say("–")
            self._change.say("")
            self._band.say(None, 0, 0, None)
            self._sure.say(tr("Not tested yet"))
        else:
            low, high = wilson(family.latest, family.questions, z=1.96)  # 95 %, as the overview says
            self._figure.say(percent(family.latest))
            self._change.say(_change(family))
            self._band.say(family.latest, low, high, family.first)
            between, n = dict(low=percent(low), high=percent(high)), family.questions
            self._sure.say(
                counted(
                    "{low} to {high} likely, {n} puzzle", "{low} to {high} likely, {n} puzzles", n, **between
                )
            )
        shown = (one.text() for one in (self._figure, self._change, self._sure))
        self.setAccessibleName(", ".join(filter(None, (tr(family.title), level, *shown, since, guessed))))


def _change(family: FamilyView) -> str:
    if family.first is None or family.latest is None:
        return ""
    points = round(100 * (family.latest - family.first))
    if not points:
        return tr("no change")
    return counted("{sign}{n} point", "{sign}{n} points", abs(points), sign="+" if points > 0 else "−")


_MOST = 4
"""Maximum columns."""


class Tiles(QWidget):
    """Tiles in as many columns as fit."""

    def __init__(self, theme: Theme, least: int = 244) -> None:
        super().__init__()
        self._theme, self._least = theme, least
        self._tiles: list[Tile] = []
        self._columns = 0
        self._empty = [QWidget(self) for _ in range(_MOST)]
        """One in each column: a grid leaves no gap beside a column without widgets, so its tiles would be
        wider than those of the next kind."""
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(16)

    def tiles(self, count: int) -> list[Tile]:
        """Returns this many tiles, creating or hiding some as needed."""
        while len(self._tiles) < count:
            self._tiles.append(Tile(self._theme))
            self._columns = 0
        self._arrange()  # before they are shown: a widget without a parent would flash up as a window
        for at, tile in enumerate(self._tiles):
            tile.setVisible(at < count)
        return self._tiles[:count]

    def minimumSizeHint(self) -> QSize:
        """Returns the width of one column, however many there are now; otherwise the page could grow but never
        shrink."""
        return QSize(self._least, super().minimumSizeHint().height())

    def resizeEvent(self, event: object) -> None:
        self._arrange()

    def _arrange(self) -> None:
        columns = max(1, min(_MOST, (self.width() + 16) // (self._least + 16)))
        if columns == self._columns:
            return
        for at in range(self._columns):
            self._grid.setColumnStretch(at, 0)
        self._columns = columns
        for at, tile in enumerate(self._tiles):
            self._grid.addWidget(tile, at // columns, at % columns)
        for at, empty in enumerate(self._empty):
            self._grid.addWidget(empty, 0, min(at, columns - 1))
        for at in range(columns):
            self._grid.setColumnStretch(at, 1)
