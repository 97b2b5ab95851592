"""Whether drawings move: by the setting, and by what the system was asked for. Until that is known, they are
still."""

from __future__ import annotations

import threading
from functools import cache

from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from app.desktop import motion
from app.ui.view.settings import Choices

FRAME_MS = 100
"""A fish at rest in the water needs no more frames than these, and a window no more of a core."""


class System:
    """Asks once, in a thread."""

    def __init__(self) -> None:
        self.still = True
        threading.Thread(target=self._ask, daemon=True, name="motion").start()

    def _ask(self) -> None:
        self.still = motion.reduced()


@cache
def system() -> System:
    return System()


def still(choices: Choices) -> bool:
    """Whether nothing is to move."""
    return choices["motion"] == "still" or system().still


class Moving(QWidget):
    """A drawing that moves only while it is seen and things may move. `timer` ticks once for each frame."""

    def __init__(self, choices: Choices) -> None:
        super().__init__()
        self._choices, self._wanted = choices, False
        self.timer = QTimer(self, interval=FRAME_MS)

    def want(self, on: bool) -> None:
        """Whether there is something to be seen that moves."""
        self._wanted = on
        self._settle()

    def _settle(self) -> None:
        seen = self.isVisible() and not self.window().isMinimized()
        runs = self._wanted and seen and not still(self._choices)
        if runs != self.timer.isActive():
            self.timer.start() if runs else self.timer.stop()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._settle()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._settle()
