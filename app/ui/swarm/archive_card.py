"""Answers as a file, for a computer that no relay reaches. Both buttons run `shoal archive`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtWidgets import QFileDialog, QFrame

from app.ui.language.spoken import spoken
from app.ui.language.texts import counted, tr
from app.ui.process.child import Child
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import Label, boxed, button, column

_LINE = 2**16


class ArchiveCard(QFrame):
    def __init__(self, child: Callable[[], Child] = lambda: Child(_LINE)) -> None:
        super().__init__()
        self.setProperty("look", "card")
        self._home, self._alone, self._doing = "", False, ""
        self._child, self._said = child(), Label("", "soft", wrap=True)
        self._child.line.connect(self._heard)
        self._child.ended.connect(self._ended)
        self._said.hide()
        self._bring = button(tr("Learn from a file …"), self._choose_import)
        self._give = button(tr("Save answers as a file …"), self._choose_export)
        why = tr(
            "A file of answers goes where no network does, by USB stick for example. Each answer is checked "
            "before your model learns from it. Only take files from people you trust."
        )
        self.setLayout(
            column(
                Label(tr("Answers as a file"), "heading"),
                Label(why, "soft", wrap=True),
                boxed(Bend(self._bring, self._give, 1, gap=8)),
                self._said,
                gap=10,
                margins=(20, 16, 20, 16),
            )
        )

    def show_home(self, home: str, alone: bool) -> None:
        """The data folder, and whether the model learns alone."""
        self._home, self._alone = home, alone

    def _choose_import(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, tr("Learn from a file"), str(Path.home()), "*.jsonl")
        if path:
            self.run("import", path)

    def _choose_export(self) -> None:
        name = Path.home() / time.strftime("shoal-answers-%Y%m%d.jsonl")
        path, _ = QFileDialog.getSaveFileName(self, tr("Save answers as a file"), str(name), "*.jsonl")
        if path:
            self.run("export", path)

    def run(self, what: str, path: str) -> None:
        """`what`: "import" or "export"."""
        self._doing = what
        self._say(tr("Checking each answer …") if what == "import" else tr("Saving …"))
        for one in (self._bring, self._give):
            one.setEnabled(False)
        self._child.start(["archive", what, path, "--json", "--home", self._home], hear=True)

    def _heard(self, line: bytes) -> None:
        try:
            told: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.MsgspecError:
            return
        groups = int(told["groups"])
        if self._doing == "export":
            self._say(counted("{n} answered puzzle is saved.", "{n} answered puzzles are saved.", groups))
            return
        refused = sum(told["refused"].values())
        passed = counted(
            "{n} answered puzzle passed the checks.", "{n} answered puzzles passed the checks.", groups
        )
        turned = counted("{n} was turned away.", "{n} were turned away.", refused) if refused else ""
        then = (
            tr("Your model learns from them after the next start of Shoal.")
            if self._alone
            else tr("Your model learns from them in the next rounds.")
        )
        self._say(" ".join(filter(None, (passed, turned, then))))

    def _ended(self, code: int) -> None:
        for one in (self._bring, self._give):
            one.setEnabled(True)
        if code:
            self._say(spoken(self._child.complaint) or tr("That didn't work. Try again."))

    def _say(self, sentence: str) -> None:
        self._said.tell(sentence)
        self._said.show()
