"""Whether drawings move: by the setting, and by what the system was asked for. Until that is known, they are
still."""

from __future__ import annotations

import threading
from functools import cache

from PySide6.QtCore import QObject, QTimer
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


class Frames(QObject):
    """Calls `step` of a drawing for every frame while somebody can see it and things may move."""

    def __init__(self, drawing: QWidget, choices: Choices, interval: int = FRAME_MS) -> None:
        super().__init__(drawing)
        self._choices = choices
        self.wanted = False
        self.timer = QTimer(self, interval=interval)

    def want(self, on: bool) -> None:
        """Whether there is something to be seen that moves."""
        self.wanted = on
        self.settle()

    def settle(self) -> None:
        """After it was shown, hidden or a setting was changed."""
        drawing = self.parent()
        seen = isinstance(drawing, QWidget) and drawing.isVisible() and not drawing.window().isMinimized()
        runs = self.wanted and seen and not still(self._choices)
        if runs != self.timer.isActive():
            self.timer.start() if runs else self.timer.stop()


class Moving(QWidget):
    """A drawing that moves only while it is seen. `frames.timer` is what it listens to."""

    def __init__(self, choices: Choices, interval: int = FRAME_MS) -> None:
        super().__init__()
        self.frames = Frames(self, choices, interval)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.frames.settle()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.frames.settle()
