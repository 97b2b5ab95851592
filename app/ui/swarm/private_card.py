"""A private swarm: six words to show to those who may join, or to enter from somebody who made them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QWidget

from app.ui.language.spoken import spoken
from app.ui.language.texts import tr
from app.ui.theme import Theme
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import CopyButton, Label, boxed, button, column, field, row

_MODULE, _QUIET = 4, 4
"""Pixels of a module of the code, and modules of light around it, as the standard wants."""
HIDDEN = "•••••  •••••  •••••  •••••  •••••  •••••"


class PrivateCard(QFrame):
    """`join` gets six words with a valid checksum. It may raise OSError."""

    def __init__(self, theme: Theme, join: Callable[[str], None]) -> None:
        super().__init__()
        self.setProperty("look", "card")
        self._join, self._text = join, ""
        self._why = Label("", "soft", wrap=True)
        self._field = field(tr("Six words"))
        self._field.setMinimumWidth(240)
        self._field.returnPressed.connect(self._take)
        self._complaint = Label("", "bad", wrap=True)
        self._complaint.hide()
        self._ask = boxed(
            Bend(
                self._field,
                button(tr("Join"), self._take),
                button(tr("Make new words"), self._make, hint=tr("Starts a private swarm")),
                gap=8,
            )
        )
        self._words = Label(HIDDEN, "strong", wrap=True)
        self._words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._qr = QrCode(tr("The six words as a QR code"))
        self._show = button(tr("Show the words"), self._toggle)
        self._copy = CopyButton(theme, tr("Copy the words"), lambda: self._text)
        self._again = button(tr("Join again"), lambda: self._try(self._text), "primary")
        doing = Bend(self._show, self._copy, self._again, 1, gap=8)
        said = column(self._words, boxed(doing), gap=10)
        said.addStretch(1)
        self._told = boxed(row(said, self._qr, gap=24, fill=0))
        self.setLayout(
            column(
                Label(tr("Private swarm"), "heading"),
                self._why,
                self._ask,
                self._told,
                self._complaint,
                gap=10,
                margins=(20, 16, 20, 16),
            )
        )
        self.show_words("", joined=False)

    def show_words(self, words: str, joined: bool) -> None:
        """The words of this computer's private swarm, if it has one; `joined`: it is connected now."""
        if words != self._text:
            self._text = words
            self._put(False)
        self._ask.setVisible(not words)
        self._told.setVisible(bool(words))
        self._again.setVisible(not joined)
        self._why.say(
            tr("Anyone who has these words can join. Share them only with people you trust.")
            if words
            else tr("Six words let people you trust learn together. Enter theirs, or make new ones.")
        )

    def _toggle(self) -> None:
        self._put(self._words.text() == HIDDEN)

    def _put(self, shown: bool) -> None:
        """Shows or hides words and code, which are for the eyes of invited people only."""
        shown = shown and bool(self._text)
        self._words.say(self._text if shown else HIDDEN)
        self._qr.show_text(self._text if shown else "")
        self._qr.setVisible(shown)
        self._show.setText(tr("Hide the words") if shown else tr("Show the words"))

    def _take(self) -> None:
        from app.swarm.invite.private import PrivateError, check_words

        try:
            words = check_words(self._field.text())
        except PrivateError as error:
            self._complaint.tell(spoken(str(error)))
            self._field.setFocus()
            return
        self._try(words)

    def _make(self) -> None:
        from app.swarm.invite.private import new_words

        self._try(new_words())
        self._put(True)

    def _try(self, words: str) -> None:
        self._complaint.hide()
        try:
            self._join(words)
        except OSError as error:
            self._complaint.tell(tr("The words can't be saved: {why}.", why=error.strerror or error))
        else:
            self._field.clear()
            self.show_words(words, joined=True)


class QrCode(QWidget):
    """A text as a QR code, dark on light in every theme: many cameras read no other. `name` is its name for
    screen readers."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._modules: list[bytes] = []
        self.setAccessibleName(name)
        self.setToolTip(name)

    def show_text(self, text: str) -> None:
        """An empty text shows no code."""
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
