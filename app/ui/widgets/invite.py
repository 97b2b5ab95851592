"""Where an invite to a swarm is written, or the address of a relay."""

from __future__ import annotations

from PySide6.QtWidgets import QLineEdit

from app.ui.language.spoken import spoken
from app.ui.language.texts import tr
from app.ui.widgets.pieces import Label


class InviteField(QLineEdit):
    """`complaint` says what is wrong with the text and `words` what it means to join a class; anyone who makes
    the field places both. `go_on` is what the button says that joins."""

    def __init__(self, go_on: str) -> None:
        super().__init__()
        self._go_on, self._agreeing = go_on, ""
        self.setPlaceholderText(tr("Invite link or address"))
        self.setAccessibleName(tr("Invite link or address"))
        self.complaint = Label("", "bad", wrap=True)
        self.complaint.hide()
        self.words = Label("", "soft", wrap=True)
        self.words.hide()
        self.textChanged.connect(self._again)

    def checked(self) -> str | None:
        """What was written, None where it leads nowhere, and at first where it leads into a class: the line
        below says why."""
        from app.swarm.invite.invite import InviteError, where

        text, wrong, room = self.text().strip(), "", None
        try:
            room = where(text).room
        except InviteError as error:
            wrong = spoken(str(error))
        agreed = room is None or text == self._agreeing
        self._agreeing = text
        self.complaint.tell(wrong)
        again = tr("Press {button} again to agree.", button=self._go_on)
        self.words.tell("" if wrong or agreed else f"{class_words()} {again}")
        return text if not wrong and agreed else None

    def _again(self) -> None:
        """Anyone who writes something else agrees to nothing yet."""
        self._agreeing = ""
        self.words.hide()


def class_words() -> str:
    """What anyone who joins a class agrees to."""
    return tr(
        "This is a class. Its teacher sees your model's made-up name and skills, and can pause it. Your files "
        "and your own name stay with you."
    )
