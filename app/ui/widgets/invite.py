"""The field for an invite to a swarm, and the question asked when a link was opened elsewhere.

Any page or message may open a link, so the owner is asked before joining."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QMessageBox, QWidget

from app.ui.language.texts import tr, translated
from app.ui.widgets.pieces import Label


class InviteField(QLineEdit):
    """A field for an invite. `complaint` says what is wrong with the text and `words` what joining a class
    means; the caller places both. `go_on` is the text of the button that joins."""

    def __init__(self, go_on: str) -> None:
        super().__init__()
        self._go_on, self._agreeing = go_on, ""
        self.setPlaceholderText(tr("Invite, six words or address"))
        self.setAccessibleName(tr("Invite, six words or address"))
        self.complaint = Label("", "bad", wrap=True)
        self.complaint.hide()
        self.words = Label("", "soft", wrap=True)
        self.words.hide()
        self.textChanged.connect(self._again)

    def join_entered(self, join: Callable[[str], None], join_private: Callable[[str], None]) -> bool:
        """Joins the swarm that was entered, if `checked` allows it; returns whether it did."""
        text = self.checked()
        if text is None:
            self.setFocus()
            return False
        try:
            (join_private if " " in text else join)(text)
        except OSError as error:
            self.complaint.tell(saving_error(error))
            return False
        return True

    def checked(self) -> str | None:
        """Returns an invite as a link, also if it was typed as six words; or the six words of a private swarm.
        Returns None, and shows a sentence below the field, if the text is neither, or leads into a class and
        that was not confirmed yet."""
        from app.swarm.invite.invite import (
            InviteError,
            invite_from_text,
            is_invite_number,
            number_from_words,
            try_split_words,
        )
        from app.swarm.invite.private import PrivateError, validate_words

        text, wrong, room = self.text().strip(), "", None
        try:
            words = try_split_words(text)
            if words is not None and not is_invite_number(number_from_words(words)):
                text = validate_words(text)
            else:
                invite = invite_from_text(text)
                room = invite.room
                text = invite.link() if words is not None else text
        except (InviteError, PrivateError) as error:
            wrong = translated(str(error))
        agreed = room is None or text == self._agreeing
        self._agreeing = text
        self.complaint.tell(wrong)
        again = tr("Press {button} again to agree.", button=self._go_on)
        self.words.tell("" if wrong or agreed else f"{class_words()} {again}")
        return text if not wrong and agreed else None

    def _again(self) -> None:
        """Withdraws the confirmation and the complaint, because the text has changed."""
        self._agreeing = ""
        self.words.hide()
        self.complaint.hide()


def saving_error(error: OSError) -> str:
    return tr("The words can't be saved: {why}.", why=error.strerror or error)


def class_words() -> str:
    """Returns the sentence that says what joining a class means."""
    return tr(
        "This is a class. Its teacher sees your model's made-up name, its skills and whether it's learning, "
        "and can pause it. Your files and your own name stay with you."
    )


def must_ask(link: str) -> bool:
    """Whether this link needs a question before joining, even if the person typed it: it is invalid, or leads
    into a class, whose teacher sees this model's skills."""
    from app.swarm.invite.invite import InviteError, invite_from_text

    try:
        return bool(invite_from_text(link).room)
    except InviteError:
        return True


def ask_to_join(parent: QWidget, link: str, join: Callable[[str], None]) -> QMessageBox:
    """Asks, without blocking, whether to join the link's swarm; says what is wrong with an invalid link."""
    from app.swarm.invite.invite import InviteError, invite_from_text

    box = QMessageBox(parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle("Shoal")
    box.setTextFormat(Qt.TextFormat.PlainText)
    try:
        invite = invite_from_text(link)
        relay = urlsplit(invite.url).netloc
    except InviteError as error:
        box.setText(tr("This link doesn't lead to a swarm"))
        box.setInformativeText(translated(str(error)))
        box.addButton(tr("Close"), QMessageBox.ButtonRole.RejectRole)
        box.open()
        return box
    box.setText(tr("Learn with others at {relay}?", relay=relay))
    box.setInformativeText(
        tr(
            "This link invites you there. Only puzzle answers are shared, as plain text. Never your "
            "files, never the model, and nothing you type without your yes."
        )
        + (f"\n\n{class_words()}" if invite.room else "")
    )
    yes = box.addButton(tr("Join"), QMessageBox.ButtonRole.AcceptRole)
    no = box.addButton(tr("Cancel"), QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(no)
    box.setEscapeButton(no)
    yes.clicked.connect(lambda: join(link))
    box.open()
    return box
