"""The logs, updated as they grow: one at a time, with a filter, a copy button, and their folder; and the
diagnostics bundle, whose files are shown before anything is saved."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QProcess, QTimer, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication, QHideEvent, QShowEvent
from PySide6.QtWidgets import QDialog, QListWidget, QPlainTextEdit, QWidget

from app.common import remedy
from app.common.text import safe
from app.ui.language.texts import counted, size, tr
from app.ui.process.child import surround
from app.ui.process.logs import LOGS, Tail
from app.ui.settings import diagnostics
from app.ui.theme import Theme
from app.ui.theme.palette import SMALL
from app.ui.theme.theme import mono
from app.ui.view.view import View
from app.ui.widgets.pieces import IconButton, Label, button, column, place_to_save, row, search
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
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.text.toPlainText()))
        folder = IconButton(theme, "folder", tr("Open the folder of the logs"))
        folder.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._home / "logs"))))
        self.text: QPlainTextEdit = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setAccessibleName(tr("Log"))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setMaximumBlockCount(MOST_LINES)
        self.text.setStyleSheet(f'font-family: "{mono(SMALL).family()}"; font-size: {SMALL}px;')
        self.text.setMinimumHeight(260)
        self._count = Label("", "faint")
        tools = (self._which, self._find, Label(tr("Follow"), "soft"), self._follow, copy, folder)
        above = row(*tools, gap=8, fill=1)
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

    def _begin(self) -> None:
        self._tail, self._lines = Tail(self._home / "logs" / str(self._which.value), FIRST_BYTES), []
        self._write()
        self._look()

    def _look(self) -> None:
        if self._tail is None or not self.isVisible():
            return
        said, anew = self._tail.more()
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


DOCTOR = ("-m", "app.cli", "doctor", "--json")
_DOCTOR_MS = 90_000


class BundleDialog(QDialog):
    """Runs doctor in a process of its own, because it loads the engines; its output is added when it is
    ready."""

    def __init__(self, parent: QWidget | None, view: View, doctor: Sequence[str] = DOCTOR) -> None:
        super().__init__(parent)
        self._view = view
        self.setWindowTitle(tr("Diagnostics"))
        self.resize(900, 620)
        self._names = QListWidget()
        self._names.setAccessibleName(tr("Files of the bundle"))
        self._names.setFixedWidth(220)
        self._names.currentRowChanged.connect(self._show)
        self._text = QPlainTextEdit()
        self._text.setReadOnly(True)
        self._text.setAccessibleName(tr("What is in this file"))
        self._text.setStyleSheet(f'font-family: "{mono(SMALL).family()}"; font-size: {SMALL}px;')
        self._said = Label("", "soft", wrap=True)
        self._save = button(tr("Save …"), self._choose, "primary")
        exactly = tr(
            "This is exactly what gets saved. Keys, invites, tokens, answers and your name are left out. "
            "Nothing is sent."
        )
        what = Label(exactly, "soft", wrap=True)
        below = row(self._said, self._save, button(tr("Close"), self.reject), gap=8, fill=0)
        inside = row(self._names, self._text, gap=12, fill=1)
        self.setLayout(column(what, inside, below, gap=14, margins=(20, 18, 20, 18), fill=1))
        self.files: tuple[diagnostics.BundleFile, ...] = ()
        self._take(tr("Still looking."))
        self._said.say(tr("Looking at this computer …"))
        self._doctor = QProcess(self)
        self._ask(doctor)

    def _ask(self, doctor: Sequence[str]) -> None:
        surround(self._doctor)
        self._doctor.finished.connect(lambda *_: self._answered())
        self._doctor.errorOccurred.connect(lambda *_: self._answered())
        self._patience = QTimer(self, singleShot=True, interval=_DOCTOR_MS)
        self._patience.timeout.connect(self._doctor.kill)
        self._patience.start()
        self._doctor.start(sys.executable, [*doctor, "--home", self._view.home])

    def _answered(self) -> None:
        self._patience.stop()
        said = bytes(self._doctor.readAllStandardOutput().data()).decode("utf-8", "replace")
        self._take(said or tr("{doctor} said nothing.", doctor=remedy.command("doctor")))
        much = size(sum(len(one.text.encode()) for one in self.files))
        self._said.say(counted("{n} file, {size}", "{n} files, {size}", len(self.files), size=much))

    def _take(self, doctor: str) -> None:
        at = max(0, self._names.currentRow())
        self.files = diagnostics.files(self._view, doctor)
        self._names.clear()
        self._names.addItems([one.name for one in self.files])
        self._names.setCurrentRow(min(at, len(self.files) - 1))

    def _show(self, at: int) -> None:
        self._text.setPlainText(self.files[at].text if 0 <= at < len(self.files) else "")

    def _choose(self) -> None:
        name = time.strftime("shoal-diagnostics-%Y%m%d-%H%M.zip")
        if path := place_to_save(self, tr("Save the diagnostics"), name):
            self.save(path)

    def save(self, path: Path) -> None:
        try:
            diagnostics.save(self.files, path)
        except OSError as error:
            why = error.strerror or str(error)
            self._said.say(tr("{path} can't be written ({why}). Pick another place.", path=path, why=why))
        else:
            self._said.say(tr("Saved as {path}.", path=path))

    def done(self, result: int) -> None:
        self._doctor.blockSignals(True)
        self._doctor.kill()
        self._doctor.waitForFinished(2000)
        super().done(result)
