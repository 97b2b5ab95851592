"""The logs, updated as they grow: one at a time, with a filter, a copy button, and their folder."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QTimer, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication, QHideEvent, QShowEvent
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.common.text import safe
from app.ui.language.texts import counted, tr
from app.ui.process.logs import LOGS, Tail
from app.ui.theme import Theme
from app.ui.theme.palette import SMALL
from app.ui.theme.theme import mono
from app.ui.widgets.pieces import IconButton, Label, column, row, search
from app.ui.widgets.selecting import Segments, Switch

FIRST_BYTES = 256 * 1024
MOST_LINES = 20_000
LOOK_MS = 700


class LogView(QWidget):
    """The logs of one data folder. Reads only while it is visible."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._home = Path()
        self._lines: list[str] = []
        self._tail: Tail | None = None
        names = {"node.log": tr("Learning"), "trainer.log": tr("Trainer"), "window.log": tr("Window")}
        self._which = Segments([(name, names.get(name, tr("Relay"))) for name in LOGS], tr("Which log to show"))
        self._which.chosen.connect(lambda _: self._begin())
        self._find = search(tr("Only lines with …"), lambda _: self._write(), tr("Only lines with these words"))
        self._follow = Switch(theme, tr("Follow"))
        self._follow.setChecked(True)
        self._follow.toggled.connect(lambda on: self._to_end() if on else None)
        copy = IconButton(theme, "copy", tr("Copy these lines"))
        copy.clicked.connect(self._copy)
        folder = IconButton(theme, "folder", tr("Open the folder of the logs"))
        folder.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._home / "logs"))))
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setAccessibleName(tr("Log"))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setMaximumBlockCount(MOST_LINES)
        self.text.setStyleSheet(f'font-family: "{mono(SMALL).family()}"; font-size: {SMALL}px;')
        self.text.setMinimumHeight(260)
        self._count = Label("", "faint")
        above = row(
            self._which, self._find, Label(tr("Follow"), "soft"), self._follow, copy, folder, gap=8, fill=1
        )
        self.setLayout(column(above, self.text, self._count, gap=10))
        self._clock = QTimer(self, interval=LOOK_MS)
        self._clock.timeout.connect(self._look)

    def show_home(self, home: Path) -> None:
        if home != self._home:
            self._home = home
            self._begin()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._look()
        self._clock.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._clock.stop()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText())

    def _begin(self) -> None:
        self._tail, self._lines = Tail(self._home / "logs" / str(self._which.value), FIRST_BYTES), []
        self._write()
        self._look()

    def _look(self) -> None:
        if self._tail is None or not self.isVisible():
            return
        said, anew = self._tail.more()
        if anew:
            self._lines = []
        fresh = [safe(line.rstrip("\r"), strip=False) for line in said.split("\n")[:-1]]
        if anew:
            self._lines = fresh[-MOST_LINES:]
            self._write()
        elif fresh:
            self._lines = [*self._lines, *fresh][-MOST_LINES:]
            if wanted := self._filtered(fresh):
                place = self.text.verticalScrollBar().value()
                self.text.appendPlainText("\n".join(wanted))
                self.text.verticalScrollBar().setValue(place)
            self._settle()

    def _write(self) -> None:
        self.text.setPlainText("\n".join(self._filtered(self._lines)))
        self._settle()

    def _settle(self) -> None:
        shown = len(self._filtered(self._lines))
        self._count.say(counted("{n} line", "{n} lines", shown) if self._lines else tr("The log is empty."))
        if self._follow.isChecked():
            self._to_end()

    def _to_end(self) -> None:
        bar = self.text.verticalScrollBar()
        bar.setValue(bar.maximum())

    def _filtered(self, lines: list[str]) -> list[str]:
        words = self._find.text().casefold().split()
        return [line for line in lines if all(word in line.casefold() for word in words)] if words else lines
