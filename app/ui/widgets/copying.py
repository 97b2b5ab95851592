"""A button that copies a text, and says that it did."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.ui.language.texts import tr
from app.ui.theme import Theme
from app.ui.widgets.pieces import IconButton

SAID_MS = 2000


class CopyButton(IconButton):
    """`text` is asked for when the button is pressed; `name` is what it says and is called aloud."""

    def __init__(self, theme: Theme, name: str, text: Callable[[], str]) -> None:
        super().__init__(theme, "copy", name, name, "")
        self._name, self._wanted = name, text
        self.clicked.connect(self._copy)
        self._back = QTimer(self, singleShot=True, interval=SAID_MS)
        self._back.timeout.connect(lambda: self._say(name))

    def _copy(self) -> None:
        QApplication.clipboard().setText(self._wanted())
        self.setMinimumWidth(self.width())  # nothing beside it moves
        self._say(tr("Copied"))
        self._back.start()

    def _say(self, text: str) -> None:
        self.setText(text)
        self.setAccessibleName(text)
