"""The card to share, before it is saved: what is on it, with or without an invite."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QGuiApplication, QPixmap
from PySide6.QtWidgets import QDialog, QFileDialog, QLabel, QWidget

from app.ui.fish import share_card
from app.ui.language.texts import tr
from app.ui.theme import Theme
from app.ui.view.view import View
from app.ui.widgets.pieces import Label, button, column, row
from app.ui.widgets.selecting import Switch

_SHOWN = 640
"""Pixels of its width in the dialog."""


class ShareDialog(QDialog):
    def __init__(self, parent: QWidget, theme: Theme, view: View) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("A card to share"))
        self._theme, self._view = theme, view
        self._offered = view.swarm.invite if view.swarm is not None else ""
        self._picture = QLabel()
        self._said = Label(
            tr("This is all that's on it. Nothing is sent: you save it, or copy it."), "soft", wrap=True
        )
        self._invite = Switch(theme, tr("With an invite to my swarm"))
        self._invite.toggled.connect(lambda _: self._draw())
        name = Label(self._invite.accessibleName())
        name.setBuddy(self._invite)
        for part in (self._invite, name):
            part.setVisible(share_card.can_hold(self._offered))
        does = row(
            self._invite,
            name,
            1,
            button(tr("Copy"), self._copy),
            button(tr("Save as SVG …"), lambda: self._save("svg")),
            button(tr("Save as PNG …"), lambda: self._save("png"), "primary"),
            gap=8,
        )
        self.setLayout(column(self._picture, self._said, does, gap=14, margins=(24, 22, 24, 20)))
        self._draw()

    @property
    def invite(self) -> str:
        """What is on the card: nothing unless its owner wants it."""
        return self._offered if self._invite.isChecked() else ""

    def _draw(self) -> None:
        image = share_card.png(self._theme, self._view, self.invite)
        ratio = self.devicePixelRatioF()
        size = QSize(_SHOWN, _SHOWN * share_card.HIGH // share_card.WIDE)
        scaled = image.scaled(size * ratio, mode=Qt.TransformationMode.SmoothTransformation)
        pixmap = QPixmap.fromImage(scaled)
        pixmap.setDevicePixelRatio(ratio)
        self._picture.setPixmap(pixmap)
        self._picture.setAccessibleName(share_card.told(self._view))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setImage(share_card.png(self._theme, self._view, self.invite))
        self._said.say(tr("Copied. Paste it wherever you like."))

    def _save(self, ending: str) -> None:
        start = str(Path.home() / f"shoal-card.{ending}")
        chosen, _ = QFileDialog.getSaveFileName(self, tr("Save the card"), start, f"*.{ending}")
        if chosen:
            self.save_to(Path(chosen))

    def save_to(self, path: Path) -> None:
        try:
            share_card.save(path, self._theme, self._view, self.invite)
        except OSError as error:
            why = error.strerror or str(error)
            self._said.say(tr("{path} can't be written ({why}). Pick another place.", path=str(path), why=why))
        else:
            self._said.say(tr("Saved as {path}.", path=str(path)))
