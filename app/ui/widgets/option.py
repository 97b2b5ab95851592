"""One of several choices with its explanation; a radio button for the keyboard and screen readers."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QButtonGroup, QFrame, QGroupBox, QVBoxLayout

from app.ui.theme import Theme
from app.ui.widgets.pieces import Label, column, row
from app.ui.widgets.selecting import Toggle


class Radio(Toggle):
    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__(theme, name)
        self.setAutoExclusive(True)  # one of several, also for screen readers

    def sizeHint(self) -> QSize:
        return QSize(22, 22)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        on = self.isChecked()
        painter.setPen(QPen(self._theme.colour("accent" if on else "text_faint"), 5 if on else 1.6))
        painter.setBrush(self._theme.colour("surface"))
        inset = 5.5 if on else 4.0
        painter.drawEllipse(QRectF(self.rect()).adjusted(inset, inset, -inset, -inset))
        if self.hasFocus():
            painter.setPen(QPen(self._theme.colour("accent"), 1.6))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(QRectF(self.rect()).adjusted(1, 1, -1, -1))
        painter.end()


class Option(QFrame):
    """A card with a radio button, a title, a sentence, and room for more below (`inside`)."""

    def __init__(self, theme: Theme, title: str, text: str) -> None:
        super().__init__()
        self._theme = theme
        self.setProperty("look", "option")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.radio = Radio(theme, title)
        self.radio.setAccessibleDescription(text)
        self.text = Label(text, "soft", wrap=True)
        self.inside: QVBoxLayout = column(Label(title, "strong"), self.text, gap=3)
        whole = row(self.radio, self.inside, gap=10, margins=(14, 11, 16, 12), fill=1)
        whole.setAlignment(self.radio, Qt.AlignmentFlag.AlignTop)
        self.setLayout(whole)
        self.radio.toggled.connect(self._draw)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.radio.click()

    def _draw(self, on: bool) -> None:
        self.setProperty("look", "option-on" if on else "option")
        self.style().unpolish(self)
        self.style().polish(self)


class OptionGroup(QGroupBox):
    """Options of which one is chosen. `chosen` emits the value."""

    chosen = Signal(object)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self._group = QButtonGroup(self)
        self._values: list[object] = []
        self._column = column(gap=10)
        self.setLayout(self._column)
        self._group.idToggled.connect(self._toggled)

    @property
    def value(self) -> object:
        return self._values[self._group.checkedId()] if self._group.checkedId() >= 0 else None

    def add(self, value: object, option: Option) -> None:
        """The first one is chosen until another is."""
        self._values.append(value)
        self._group.addButton(option.radio, len(self._values) - 1)
        self._column.addWidget(option)
        if len(self._values) == 1:
            option.radio.setChecked(True)

    def _toggled(self, at: int, on: bool) -> None:
        if on:
            self.chosen.emit(self._values[at])
