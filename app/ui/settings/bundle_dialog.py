"""The dialog that shows the whole text of the diagnostics, and saves it if the person wants."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QDialog, QPlainTextEdit, QWidget

from app.ui.language.texts import size, tr
from app.ui.process.job import Job
from app.ui.settings import diagnostics
from app.ui.theme.theme import SMALL, mono
from app.ui.view.view import View
from app.ui.widgets.pieces import Label, button, column, row
from app.ui.widgets.saving import place_to_save, save_text
from engines import remedy

DOCTOR = ("-m", "app.cli", "doctor", "--json")
_DOCTOR_MS = 90_000
"""Maximum milliseconds for doctor to run."""


class BundleDialog(QDialog):
    """Shows the diagnostics and saves them. Runs doctor in a separate process, because it loads the engines,
    and adds its output when it is ready."""

    def __init__(self, parent: QWidget | None, view: View, doctor: Sequence[str] = DOCTOR) -> None:
        super().__init__(parent)
        self._view = view
        self.setWindowTitle(tr("Diagnostics"))
        self.resize(900, 620)
        self._text = QPlainTextEdit(diagnostics.report(view, tr("Still looking.")))
        self._text.setReadOnly(True)
        self._text.setAccessibleName(tr("Diagnostics"))
        self._text.setStyleSheet(f'font-family: "{mono(SMALL).family()}"; font-size: {SMALL}px;')
        self._said = Label(tr("Looking at this computer …"), "soft", wrap=True)
        self._save = button(tr("Save …"), self._choose, "primary")
        exactly = tr(
            "This is exactly what gets saved. Keys, invites, tokens, answers and your name are left out. "
            "Nothing is sent."
        )
        what = Label(exactly, "soft", wrap=True)
        below = row(self._said, self._save, button(tr("Close"), self.reject), gap=8, fill=0)
        self.setLayout(column(what, self._text, below, gap=14, margins=(20, 18, 20, 18), fill=1))
        self._heard: list[bytes] = []
        self._doctor = Job(command=doctor)
        self._doctor.line.connect(self._heard.append)
        self._doctor.ended.connect(lambda code: self._answered())
        self._doctor.start(["--home", view.home])
        self._patience = QTimer(self, singleShot=True, interval=_DOCTOR_MS)
        self._patience.timeout.connect(self._give_up)
        self._patience.start()

    @property
    def text(self) -> str:
        return self._text.toPlainText()

    def _give_up(self) -> None:
        self._doctor.kill()
        self._answered()

    def _answered(self) -> None:
        self._patience.stop()
        said = b"".join(self._heard).decode("utf-8", "replace")
        said = said or tr("{doctor} said nothing.", doctor=remedy.command("doctor"))
        self._text.setPlainText(diagnostics.report(self._view, said))
        self._said.say(size(len(self.text.encode())))

    def _choose(self) -> None:
        name = time.strftime("shoal-diagnostics-%Y%m%d-%H%M.txt")
        if path := place_to_save(self, tr("Save the diagnostics"), name):
            self.save(path)

    def save(self, path: Path) -> None:
        self._said.say(save_text(path, self.text)[1])

    def done(self, result: int) -> None:
        self._patience.stop()
        self._doctor.kill(wait=True)
        super().done(result)
