"""A link that was opened elsewhere, in a message or on a page: any page may open one, so the owner is asked."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from app.ui.language.spoken import spoken
from app.ui.language.texts import tr
from app.ui.widgets.invite import class_words


def must_ask(link: str) -> bool:
    """Whether even an owner who typed this link is shown something first: what is wrong with it, or what the
    teacher of a class gets to see."""
    from app.swarm.invite.invite import InviteError, where

    try:
        return bool(where(link).room)
    except InviteError:
        return True


def follow(parent: QWidget, link: str, join: Callable[[str], None]) -> QMessageBox:
    """Asks whether to learn with others there, and goes on meanwhile; says what is wrong with a wrong link."""
    from app.swarm.invite.invite import InviteError, where

    box = QMessageBox(parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle("Shoal")
    box.setTextFormat(Qt.TextFormat.PlainText)
    try:
        invite = where(link)
        relay = urlsplit(invite.url).netloc
    except InviteError as error:
        box.setText(tr("This link doesn't lead to a swarm"))
        box.setInformativeText(spoken(str(error)))
        box.addButton(tr("Close"), QMessageBox.ButtonRole.RejectRole)
        box.open()
        return box
    box.setText(tr("Learn with others at {relay}?", relay=relay))
    box.setInformativeText(
        tr(
            "This link invites you there. Only puzzle answers are shared, as plain text. Never your "
            "files, never the model, and nothing you type without your yes."
        )
        + (f" {class_words()}" if invite.room else "")
    )
    yes = box.addButton(tr("Join"), QMessageBox.ButtonRole.AcceptRole)
    no = box.addButton(tr("Cancel"), QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(no)
    box.setEscapeButton(no)
    yes.clicked.connect(lambda: join(link))
    box.open()
    return box
