"""Where an invite to a swarm is written, or the address of a relay."""

from __future__ import annotations

from PySide6.QtWidgets import QLineEdit

from app.ui.spoken import spoken
from app.ui.texts import tr
from app.ui.widgets.pieces import Label


class InviteField(QLineEdit):
    """`complaint` says what is wrong with the text, and is placed by whoever makes the field."""

    def __init__(self) -> None:
        super().__init__()
        self.setPlaceholderText(tr("Invite link or address"))
        self.setAccessibleName(tr("Invite link or address"))
        self.complaint = Label("", "bad", wrap=True)
        self.complaint.hide()

    def checked(self) -> str | None:
        """What was written, None where it leads nowhere: then the complaint says why."""
        from app.swarm.invite import InviteError, where

        text, wrong = self.text().strip(), ""
        try:
            where(text)
        except InviteError as error:
            wrong = spoken(str(error))
        self.complaint.tell(wrong)
        return None if wrong else text
