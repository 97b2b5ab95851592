"""The owner's identity in the settings: the name among other Shoals, where its key is, its recovery words, and
how to change it."""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QDialog, QPlainTextEdit, QWidget

from app.ui.language.texts import tr
from app.ui.process.identity import IdentityControl
from app.ui.theme.theme import BODY, mono
from app.ui.view.view import Persona
from app.ui.widgets.bend import Bend
from app.ui.widgets.exchange import breakable
from app.ui.widgets.pieces import Card, Label, button, column, confirm, row, rule

WORDS = 24
SHOWN_MS = 180_000
"""Milliseconds after which recovery words are hidden automatically."""
_COLUMNS = 4


class IdentitySection(QWidget):
    """Shows one Persona; asks before a secret is shown or the name is changed."""

    def __init__(self, ask: IdentityControl) -> None:
        super().__init__()
        self._ask, self._persona = ask, Persona()
        self._name, self._where = Label("", "strong"), Label("", "soft", wrap=True)
        self._file = Label("", "faint", wrap=True)
        self._trouble = Label("", "bad", wrap=True)
        self._words = WordsBox()
        self._show = button("", self._toggle)
        self._restore = button(tr("Restore from words …"), self._ask_words)
        self._new = button(tr("New identity …"), self._ask_new, "danger")
        self._timer = QTimer(self, singleShot=True, interval=SHOWN_MS)
        self._timer.timeout.connect(self.hide_words)
        said = column(self._name, self._where, self._file, gap=3)
        buttons = Bend(self._show, self._restore, 1, self._new, gap=8)
        head = Label(tr("Your identity"), "heading")
        self.setLayout(column(head, said, self._trouble, self._words, rule(), buttons, gap=12))
        self.hide_words()
        self.show_persona(Persona())

    def show_persona(self, persona: Persona) -> None:
        if persona.name != self._persona.name:
            self.hide_words()
        self._persona = persona
        self._name.tell(persona.name)
        self._where.say(key_location(persona))
        self._file.tell(breakable(persona.file))
        self._trouble.tell("" if persona.busy else persona.failed)
        self._show.setVisible(bool(persona.name) and persona.kept != "file")
        self._new.setVisible(bool(persona.name))
        for one in (self._show, self._restore, self._new):
            one.setEnabled(persona.asked and not persona.busy)

    def hide_words(self) -> None:
        """Hides the words and removes them from the window's memory."""
        self._timer.stop()
        self._words.say("")
        self._words.hide()
        self._show.setText(tr("Show recovery words"))

    def _toggle(self) -> None:
        if not self._words.isHidden():
            self.hide_words()
            return
        question = tr("Show the recovery words of {name}?", name=self._persona.name)
        about = tr("Anyone who reads them can be you. Make sure no one is looking over your shoulder.")
        if confirm(self, question, about, tr("Show them")):
            self._ask.words(self._take)

    def _take(self, words: str) -> None:
        if not self.isVisible():  # another page is shown by now
            return
        self._words.say(words)
        self._words.show()
        self._show.setText(tr("Hide recovery words"))
        self._timer.start()

    def _ask_words(self) -> None:
        dialog = RestoreDialog(self.window(), self._persona)
        if dialog.exec() == QDialog.DialogCode.Accepted:
            self.hide_words()
            self._ask.restore(dialog.words)

    def _ask_new(self) -> None:
        question, about = tr("Start over with a new identity?"), identity_loss_warning(self._persona.name)
        if confirm(self, question, about, tr("New identity"), danger=True):
            self.hide_words()
            self._ask.renew()


class WordsBox(Card):
    """Recovery words in order, numbered."""

    def __init__(self) -> None:
        super().__init__("quiet")
        self._words = Label("")
        self._words.setStyleSheet(f'font-family: "{mono(BODY).family()}"; font-size: {BODY}px;')
        advice = tr(
            "Write them down in this order and keep them safe. They bring your name back on any computer."
        )
        self.setLayout(column(self._words, Label(advice, "soft", wrap=True), gap=12, margins=(16, 14, 16, 14)))

    def say(self, words: str) -> None:
        """Shows all words, or none."""
        cells = [f"{at:>2} {word:<10}" for at, word in enumerate(words.split(), 1)]
        rows = ("".join(cells[at : at + _COLUMNS]) for at in range(0, len(cells), _COLUMNS))
        self._words.say("\n".join(rows))


class RestoreDialog(QDialog):
    """Asks for recovery words. `./shoal identity` checks them."""

    def __init__(self, parent: QWidget | None, persona: Persona) -> None:
        super().__init__(parent)
        name = persona.name
        self.setWindowTitle(tr("Restore from words"))
        self.resize(520, 320)
        self._text = QPlainTextEdit()
        self._text.setAccessibleName(tr("Recovery words"))
        self._text.setPlaceholderText(tr("All {n} words in order, separated by spaces", n=WORDS))
        self._text.setTabChangesFocus(True)
        self._text.textChanged.connect(self._count)
        self._counted = Label("", "soft")
        self._go = button(tr("Restore"), self.accept, "primary")
        back = tr("You get back the name these words belong to.")
        about = identity_loss_warning(name) if name and persona.kept != "file" else back
        below = row(self._counted, 1, button(tr("Cancel"), self.reject), self._go, gap=8)
        head = Label(tr("Enter your recovery words"), "heading")
        parts = (head, Label(about, "soft", wrap=True), self._text, below)
        self.setLayout(column(*parts, gap=12, margins=(20, 18, 20, 18), fill=2))
        self._count()

    @property
    def words(self) -> str:
        return self._text.toPlainText()

    def _count(self) -> None:
        n = len(self.words.split())
        self._counted.say(tr("{n} of {all} words", n=n, all=WORDS))
        self._go.setEnabled(n == WORDS)


def key_location(persona: Persona) -> str:
    """Returns a sentence on where the private key is stored."""
    if persona.busy:
        return tr("Changing your identity …")
    if not persona.asked:
        return tr("Looking for your key …")
    if not persona.name:
        return tr("You get a name when you first learn with others.")
    match persona.kept:
        case "keyring":
            return tr("Other Shoals know you by this name. Its key is in this computer's keyring.")
        case "file":
            return tr("This name's key is locked with a passphrase. Restore it once with its recovery words:")
        case _:
            return tr(
                "Other Shoals know you by this name. This computer has no keyring, so the key is in a file "
                "only you can read:"
            )


def identity_loss_warning(name: str) -> str:
    """Returns a warning about what happens to `name` when another identity replaces it."""
    return tr(
        "Other Shoals won't know you as {name} any more, and trust starts over. Your model keeps "
        "what it learned. Only its recovery words bring {name} back: write them down first.",
        name=name,
    )
