"""The hours of the week in which it may learn: painted on a grid, or written as text."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from app.node.rules.setting import HOURS_LENGTH
from app.node.rules.week import Week
from app.ui.charts.week import WeekGrid, day_name, summary
from app.ui.language.texts import tr
from app.ui.theme import Theme
from app.ui.widgets.pieces import Label, button, column, field, row


class HoursEditor(QWidget):
    """`put` is told the text of a schedule (app.node.rules.schedule), and may refuse what somebody wrote by
    hand."""

    def __init__(self, theme: Theme, name: str, put: Callable[[str], None]) -> None:
        super().__init__()
        self._put = put
        self.grid = WeekGrid(theme, name)
        self.grid.changed.connect(self._painted)
        self.grid.moved.connect(self._name_day)
        self._said = Label("", "soft", wrap=True)
        self._spread = button("", self._copy_day)
        self._clear = button(tr("Clear"), lambda: self._take(""))
        self.line = field(tr("at any time"), tr("{name}, as text", name=name))
        self.line.setMaxLength(HOURS_LENGTH)
        self.line.editingFinished.connect(lambda: put(self.line.text().strip()))
        self.setFocusProxy(self.grid)
        below = row(self._said, self._spread, self._clear, gap=8, fill=0)
        self.setLayout(column(self.grid, below, self.line, gap=10))
        self._name_day()
        self.show_text("")

    def busy(self) -> bool:
        """Whether somebody is writing here just now."""
        return self.line.hasFocus()

    def show_text(self, text: str) -> None:
        """Shows a schedule, told to no one. A text that cannot be read is shown as text alone."""
        try:
            self.grid.show_week(Week(text))
        except ValueError:
            self.grid.show_week(Week())
        if self.line.text() != text:
            self.line.setText(text)
        self.line.setCursorPosition(0)
        self._tell()

    def _painted(self) -> None:
        self._take(self.grid.week.text())

    def _copy_day(self) -> None:
        week = self.grid.week.copy()
        week.spread(max(0, self.grid.at[0]))
        self._take(week.text())

    def _take(self, text: str) -> None:
        self.show_text(text)
        self._put(text)

    def _tell(self) -> None:
        self._said.say(summary(self.grid.week))
        self._clear.setEnabled(not self.grid.week.always)
        self._spread.setEnabled(not self.grid.week.always)

    def _name_day(self) -> None:
        self._spread.setText(tr("Copy {day} to every day", day=day_name(max(0, self.grid.at[0]))))
