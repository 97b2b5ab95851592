"""The editors of settings: one control for each kind of setting, made from its declaration alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QSpinBox, QWidget

from app.node.rules.setting import ANY_TIME, DAY_MIN, NEVER, HourSpan, Setting, format_span, parse_span
from app.ui.language.texts import number, span, tr
from app.ui.theme import Theme
from app.ui.widgets.pieces import Label, boxed, button, field, row
from app.ui.widgets.selecting import Picker, Segments, Switch

Put = Callable[[Any], None]
_WIDE = 260
_STEP_MIN, _USUAL_MIN = 30, 8 * 60
"""Minutes between two times in a list, and the length of a new span of hours."""


class Editor:
    """A control for one setting: its `widget`, and `show`, which displays another value without emitting,
    unless `busy` says that the person is using the control."""

    def __init__(
        self, widget: QWidget, show: Callable[[Any], None], busy: Callable[[], bool] | None = None
    ) -> None:
        self.widget = widget
        self._show, self._busy = show, busy or widget.hasFocus

    def show(self, value: Any) -> None:
        if not self._busy():  # nothing is taken from under somebody's fingers
            with QSignalBlocker(self.widget):
                self._show(value)


def editor(theme: Theme, setting: Setting, name: str, value: Any, put: Put) -> Editor:
    """Creates an editor for a setting with this value; `put` is called on every change."""
    match setting.kind:
        case "switch":
            made = _switch(theme, setting, name, put)
        case "number" if setting.options:
            made = _pick(theme, setting, name, put)
        case "number":
            made = _number(setting, name, put)
        case "names":
            made = _line(name, tr("none"), ", ".join, _names, put)
        case "hours":
            hours = HoursEditor(theme, name, put)
            made = Editor(hours, hours.show_text, hours.busy)
        case "text":
            made = _line(name, "", str, str.strip, put)
        case "choice" if len(setting.options) <= 3:
            made = _segments(setting, name, put)
        case _:
            made = _pick(theme, setting, name, put)
    made.show(value)
    return made


def chosen_elsewhere(name: str, value: Any, write: Callable[[Any], str], go: Callable[[], None]) -> Editor:
    """Creates an Editor that shows the value in words, with a button that leads to where it is chosen."""
    said, change = Label(write(value), "soft"), button(tr("Change"), go)
    change.setAccessibleName(f"{change.text()}: {name}")
    widget = boxed(row(said, change, gap=12))
    widget.setFocusProxy(change)
    return Editor(widget, lambda value: said.say(write(value)), _never)


class HoursEditor(QWidget):
    """Chooses any time, never, or a daily span of hours. `put` is called with the span as text."""

    def __init__(self, theme: Theme, name: str, put: Put) -> None:
        super().__init__()
        self._put = put
        self.start, self.end = Picker(theme, name), Picker(theme, tr("{name}, until", name=name))
        self.start.addItem(tr("Any time"), ANY_TIME)
        self.start.addItem(tr("Never"), NEVER)
        for minute in range(0, DAY_MIN, _STEP_MIN):
            self.start.addItem(_time(minute), minute)
        for minute in range(_STEP_MIN, DAY_MIN + 1, _STEP_MIN):
            self.end.addItem(_time(minute), minute)
        self._until = Label(tr("to"), "soft")
        for box in (self.start, self.end):
            box.currentIndexChanged.connect(self._choose)
        self.setFocusProxy(self.start)
        self.setLayout(row(self.start, self._until, self.end, gap=8))

    def busy(self) -> bool:
        return self.start.view().isVisible() or self.end.view().isVisible()

    def show_text(self, text: str) -> None:
        """Shows a span without emitting."""
        span = parse_span(text)
        text = format_span(span)
        times = text not in (ANY_TIME, NEVER)
        for box, value in ((self.start, span.start if times else text), (self.end, span.end)):
            with QSignalBlocker(box):
                if box.findData(value) < 0:  # a quarter, or midnight as an end
                    box.addItem(_time(int(value)), value)
                box.setCurrentIndex(box.findData(value))
        self._until.setVisible(times)
        self.end.setVisible(times)

    def _choose(self) -> None:
        start, end = self.start.currentData(), self.end.currentData()
        if isinstance(start, int):
            if self.end.isHidden() or end == start:
                end = (start + _USUAL_MIN) % DAY_MIN
            start = format_span(HourSpan(start, end))
        self.show_text(start)
        self._put(start)


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _time(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def _switch(theme: Theme, setting: Setting, name: str, put: Put) -> Editor:
    switch = Switch(theme, name)
    switch.toggled.connect(lambda on: put(on is not setting.inverted))
    return Editor(switch, lambda value: switch.setChecked(value is not setting.inverted), _never)


def _number(setting: Setting, name: str, put: Put) -> Editor:
    spin = QSpinBox()
    spin.setRange(setting.least, setting.most)
    spin.setKeyboardTracking(False)
    spin.setSuffix(f" {setting.unit}" if setting.unit else "")
    spin.setFixedWidth(96)
    spin.lineEdit().setTextMargins(10, 0, 6, 0)  # a style sheet cannot: its padding is not heeded in there
    spin.setAccessibleName(name)
    spin.valueChanged.connect(put)
    return Editor(spin, spin.setValue)


def _segments(setting: Setting, name: str, put: Put) -> Editor:
    segments = Segments([(option, tr(text)) for option, text in setting.options], name)
    segments.chosen.connect(put)
    return Editor(segments, segments.choose, _never)


def _never() -> bool:
    """Returns False, for controls that are never in use for longer than a click."""
    return False


def _pick(theme: Theme, setting: Setting, name: str, put: Put) -> Editor:
    """Creates a drop-down list; a value that is not on it, because somebody edited the file, is added."""
    box = Picker(theme, name)
    for option, text in setting.options:
        box.addItem(tr(text), option)
    box.currentIndexChanged.connect(lambda at: put(box.itemData(at)))

    def show(value: Any) -> None:
        if box.findData(value) < 0:
            box.addItem(_shown(setting, value), value)
        box.setCurrentIndex(box.findData(value))

    return Editor(box, show, box.view().isVisible)


def _shown(setting: Setting, value: Any) -> str:
    if setting.unit == "s":
        return span(value)
    return f"{number(value)} {setting.unit}" if isinstance(value, int) else str(value)


def _line(name: str, empty: str, write: Callable[[Any], str], read: Callable[[str], Any], put: Put) -> Editor:
    line = field(empty, name, _WIDE)
    line.editingFinished.connect(lambda: put(read(line.text())))
    return Editor(line, lambda value: line.setText(write(value)))
