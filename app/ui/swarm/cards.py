"""Cards of the swarm page: a private swarm, with the six words that let others join it; and answers as a file,
for a computer that reaches no relay. The latter's buttons run `shoal archive`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QFileDialog, QWidget

from app.ui.language.spoken import spoken
from app.ui.language.texts import counted, tr
from app.ui.process.job import Job, decoded
from app.ui.theme import Theme
from app.ui.widgets.bend import Bend
from app.ui.widgets.invite import saving_error
from app.ui.widgets.pieces import Card, CopyButton, Label, boxed, button, column, place_to_save, row

_MODULE, _QUIET = 4, 4
"""Pixels of a QR code's module, and the width of its quiet zone in modules, as the standard requires."""
HIDDEN = "•••••  •••••  •••••  •••••  •••••  •••••"


class PrivateCard(Card):
    """The card of a private swarm. `join` gets six words with a valid checksum. It may raise OSError."""

    def __init__(self, theme: Theme, join: Callable[[str], None]) -> None:
        super().__init__()
        self._join, self._text = join, ""
        self._why = Label("", "soft", wrap=True)
        self._complaint = Label("", "bad", wrap=True)
        self._complaint.hide()
        self._make_words = button(tr("Make new words"), self._make, hint=tr("Starts a private swarm"))
        self._words = Label(HIDDEN, "strong", wrap=True)
        self._words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._qr = QrCode(tr("The six words as a QR code"))
        self._show = button(tr("Show the words"), self._toggle)
        self._copy = CopyButton(theme, tr("Copy the words"), lambda: self._text)
        self._again = button(tr("Join again"), lambda: self._try(self._text), "primary")
        doing = Bend(self._show, self._copy, self._again, 1, gap=8)
        shown = column(self._words, boxed(doing), gap=10)
        shown.addStretch(1)
        self._told = boxed(row(shown, self._qr, gap=24, fill=0))
        said = column(Label(tr("Private swarm"), "heading"), self._why, gap=4)
        head = row(said, self._make_words, gap=16, fill=0)
        self.setLayout(column(head, self._told, self._complaint, gap=10, margins=(20, 16, 20, 16)))
        self.show_words("", joined=False)

    def show_words(self, words: str, joined: bool) -> None:
        """Shows the words of this computer's private swarm, if it has one; `joined`: it is connected now."""
        if words != self._text:
            self._text = words
            self._put(False)
        self._make_words.setVisible(not words)
        self._told.setVisible(bool(words))
        self._again.setVisible(not joined)
        self._why.say(
            tr("Anyone who has these words can join. Share them only with people you trust.")
            if words
            else tr("Learn only with people you trust. Give them six new words; they enter them above.")
        )

    def _toggle(self) -> None:
        self._put(self._words.text() == HIDDEN)

    def _put(self, shown: bool) -> None:
        """Shows or hides words and code, which only invited people may see."""
        shown = shown and bool(self._text)
        self._words.say(self._text if shown else HIDDEN)
        self._qr.show_text(self._text if shown else "")
        self._qr.setVisible(shown)
        self._show.setText(tr("Hide the words") if shown else tr("Show the words"))

    def _make(self) -> None:
        from app.swarm.invite.private import new_words

        self._try(new_words())
        self._put(True)

    def _try(self, words: str) -> None:
        self._complaint.hide()
        try:
            self._join(words)
        except OSError as error:
            self._complaint.tell(saving_error(error))
        else:
            self.show_words(words, joined=True)


class QrCode(QWidget):
    """A text as a QR code, dark on light in every theme, because many cameras read no other. `name` is its name
    for screen readers."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._modules: list[bytes] = []
        self.setAccessibleName(name)
        self.setToolTip(name)

    def show_text(self, text: str) -> None:
        """Shows the code of a text; no code for an empty text."""
        import segno  # 150 ms, that only a private swarm costs

        lines = segno.make_qr(text).matrix_iter(border=_QUIET) if text else ()
        self._modules = [bytes(line) for line in lines]
        self.setFixedSize(len(self._modules) * _MODULE, len(self._modules) * _MODULE)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor("white"))
        for top, line in enumerate(self._modules):
            for left, dark in enumerate(line):
                if dark:
                    painter.fillRect(left * _MODULE, top * _MODULE, _MODULE, _MODULE, QColor("black"))
        painter.end()


class ArchiveCard(Card):
    def __init__(self) -> None:
        super().__init__()
        self._home, self._alone, self._doing = "", False, ""
        self._job, self._said = Job(), Label("", "soft", wrap=True)
        self._job.line.connect(self._heard)
        self._job.ended.connect(self._ended)
        self._said.hide()
        self._bring = button(tr("Learn from a file …"), self._choose_import)
        self._give = button(tr("Save answers as a file …"), self._choose_export)
        why = tr(
            "A file of answers goes where no network does, by USB stick for example. Each answer is checked "
            "before your model learns from it. Only take files from people you trust."
        )
        said, buttons = Label(why, "soft", wrap=True), boxed(Bend(self._bring, self._give, 1, gap=8))
        parts = (Label(tr("Answers as a file"), "heading"), said, buttons, self._said)
        self.setLayout(column(*parts, gap=10, margins=(20, 16, 20, 16)))

    def show_home(self, home: str, alone: bool) -> None:
        """Sets the data folder, and whether the model learns alone."""
        self._home, self._alone = home, alone

    def _choose_import(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, tr("Learn from a file"), str(Path.home()), "*.jsonl")
        if path:
            self.run("import", path)

    def _choose_export(self) -> None:
        name = time.strftime("shoal-answers-%Y%m%d.jsonl")
        if path := place_to_save(self, tr("Save answers as a file"), name):
            self.run("export", str(path))

    def run(self, what: str, path: str) -> None:
        """Imports or exports answers; `what` is "import" or "export"."""
        self._doing = what
        self._say(tr("Checking each answer …") if what == "import" else tr("Saving …"))
        for one in (self._bring, self._give):
            one.setEnabled(False)
        self._job.start(["archive", what, path, "--json", "--home", self._home])

    def _heard(self, line: bytes) -> None:
        told = decoded(line, dict[str, Any])
        if told is None:
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
        later = tr("Your model learns from them after the next start of Shoal.")
        then = later if self._alone else tr("Your model learns from them in the next rounds.")
        self._say(" ".join(filter(None, (passed, turned, then))))

    def _ended(self, code: int) -> None:
        for one in (self._bring, self._give):
            one.setEnabled(True)
        if code:
            self._say(spoken(self._job.complaint) or tr("That didn't work. Try again."))

    def _say(self, sentence: str) -> None:
        self._said.tell(sentence)
