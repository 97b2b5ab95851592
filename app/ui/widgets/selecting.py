"""Controls for choosing: switches, rows of options, drop-down lists, and large options with an explanation.
They are radio buttons to the keyboard and screen readers."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRectF, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QButtonGroup,
    QComboBox,
    QGroupBox,
    QPushButton,
    QSizePolicy,
    QStyledItemDelegate,
    QVBoxLayout,
)

from app.ui.theme import Theme
from app.ui.theme.theme import drawn
from app.ui.widgets.pieces import Card, Label, antialiased_painter, column, relook, row


class Toggle(QAbstractButton):
    """A painted control that can be on or off. `name` is for screen readers."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self.setCheckable(True)
        self.setAccessibleName(name)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)


class Switch(Toggle):
    """A switch; a check box to screen readers and the keyboard. Connect to `toggled`, because assistive
    technology toggles without clicking."""

    def show_on(self, on: bool) -> None:
        """Shows a state without emitting."""
        if on != self.isChecked():
            with QSignalBlocker(self):
                self.setChecked(on)

    def sizeHint(self) -> QSize:
        return QSize(44, 28)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = antialiased_painter(self)
        painter.setOpacity(1 if self.isEnabled() else 0.4)
        track = QRectF(3, 4, 38, 20)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour("accent" if self.isChecked() else "text_faint"))
        painter.drawRoundedRect(track, 10, 10)
        knob = track.right() - 18 if self.isChecked() else track.left() + 2
        painter.setBrush(self._theme.colour("on_accent" if self.isChecked() else "surface"))
        painter.drawEllipse(QRectF(knob, track.top() + 2, 16, 16))
        if self.hasFocus():
            painter.setPen(QPen(self._theme.colour("accent"), 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(track.adjusted(-2.25, -2.25, 2.25, 2.25), 12.25, 12.25)
        painter.end()


def one_tab_stop(group: QButtonGroup) -> None:
    """Lets Tab reach only the chosen button, from where the arrows choose another: by itself, Qt does that only
    after one of them has had the focus."""
    for one in group.buttons():
        policy = Qt.FocusPolicy.StrongFocus if one.isChecked() else Qt.FocusPolicy.ClickFocus
        one.setFocusPolicy(policy)


class Choice(QGroupBox):
    """Several options of which one is chosen; a group of radio buttons to screen readers. `chosen` emits the
    value."""

    chosen = Signal(object)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self._group = QButtonGroup(self)
        self._values: list[object] = []
        self._group.idToggled.connect(self._toggled)

    @property
    def value(self) -> object:
        return self._values[self._group.checkedId()] if self._group.checkedId() >= 0 else None

    def choose(self, value: object) -> None:
        """Shows this option as chosen, without emitting."""
        with QSignalBlocker(self._group):
            self._group.button(self._values.index(value)).setChecked(True)
        one_tab_stop(self._group)

    def _add(self, value: object, button: QAbstractButton) -> None:
        """Adds an option; the first one is chosen until another is."""
        self._values.append(value)
        self._group.addButton(button, len(self._values) - 1)
        if len(self._values) == 1:
            button.setChecked(True)
        one_tab_stop(self._group)

    def _toggled(self, at: int, on: bool) -> None:
        if on:
            one_tab_stop(self._group)
            self.chosen.emit(self._values[at])


class Segments(Choice):
    """A row of a few options."""

    def __init__(self, options: Sequence[tuple[object, str]], name: str) -> None:
        super().__init__(name)
        self.setProperty("look", "segments")
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        box = row(gap=2, margins=(2, 2, 2, 2))
        for value, text in options:
            made = QPushButton(text)
            made.setCheckable(True)
            made.setAutoExclusive(True)  # one of several, also for screen readers
            made.setProperty("look", "segment")
            made.setCursor(Qt.CursorShape.PointingHandCursor)
            self._add(value, made)
            box.addWidget(made)
        self.setLayout(box)


class Picker(QComboBox):
    """A drop-down list with our own arrow."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self.setItemDelegate(QStyledItemDelegate(self))  # the default one knows nothing of style sheets
        self.setAccessibleName(name)
        self._label: Label | None = None
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def event(self, event: QEvent) -> bool:
        """Adds an invisible label as the name, on systems that would use the selected text as the name."""
        if event.type() is QEvent.Type.ParentChange and self.parentWidget() is not None:
            if self._label is None:
                self._label = Label(self.accessibleName())
                self._label.setBuddy(self)
                self._label.hide()
            self._label.setParent(self.parentWidget())
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        arrow = drawn("chevron", self._theme.palette.text_faint, 16, 16, self.devicePixelRatioF())
        painter.drawPixmap(self.width() - 26, (self.height() - 16) // 2, arrow)
        painter.end()


class Radio(Toggle):
    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__(theme, name)
        self.setAutoExclusive(True)  # one of several, also for screen readers

    def sizeHint(self) -> QSize:
        return QSize(22, 22)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = antialiased_painter(self)
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


class Option(Card):
    """A card with a radio button, a title, a sentence, and room for more below (`inside`)."""

    def __init__(self, theme: Theme, title: str, text: str) -> None:
        super().__init__("option")
        self._theme = theme
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
        relook(self, "option-on" if on else "option")


class OptionGroup(Choice):
    """A column of options."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._column = column(gap=10)
        self.setLayout(self._column)

    def add(self, value: object, option: Option) -> None:
        self._add(value, option.radio)
        self._column.addWidget(option)
