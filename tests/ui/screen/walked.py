"""The real window, which also tells about itself: `python -m tests.ui.screen.walked HOME`. One question a line
on standard input, one JSON value a line on standard output. It is never told to do anything: who walks through
it has a keyboard and a pointer."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QWidget

from app.ui.language.texts import tr
from app.ui.shell import start
from tests.ui.geometry import faults


class Teller(QObject):
    asked = Signal(str)

    def __init__(self, desktop: start.Desktop, out: int) -> None:
        super().__init__()
        self._desktop, self._out = desktop, out
        self.asked.connect(self._answer)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self.asked.emit(line.strip())

    def _answer(self, question: str) -> None:
        told = {
            "faults": self._faults,
            "state": self._state,
            "places": self._places,
        }
        answer = tr(question) if question not in told else told[question]()
        os.write(self._out, (json.dumps(answer) + "\n").encode())

    def _state(self) -> dict[str, Any]:
        window, view = self._desktop.window, self._desktop.control.view
        return {
            "visible": window.isVisible(),
            "page": window.page,
            "size": window.size().toTuple(),
            "state": view.state.name,
            "reason": view.ruling.sentence if view.ruling is not None else view.reason,
            "round": view.safe_round,
            "ruled": view.ruling is not None,
            "points": len(view.curve),
            "typed": _text(focus) if (focus := QApplication.focusWidget()) is not None else "",
            "words": view.words,
            "connected": view.swarm is not None and view.swarm.connected,
            "given": view.swarm.given if view.swarm else 0,
            "waiting": view.swarm.waiting if view.swarm else 0,
            "taken": sum(row.taken for row in view.rounds),
            "messages": len(view.swarm.messages) if view.swarm else 0,
        }

    def _faults(self) -> list[str]:
        window = self._desktop.window
        room, own = window.screen().availableGeometry(), window.frameGeometry()
        outside = [] if room.contains(own) else [f"the window is not in its screen: {own} in {room}"]
        return [*outside, *faults(window)]

    def _places(self) -> dict[str, tuple[int, int]]:
        """The middle of every control in sight, by its text or name, in pixels of the screen."""
        window = self._desktop.window
        return {
            _text(one) or one.accessibleName(): _middle(one)
            for one in window.findChildren(QWidget)
            if isinstance(one, QAbstractButton | QLineEdit)
            and one.isVisible()
            and one.isEnabled()
            and one.visibleRegion().contains(one.rect().center())
        }


def _text(widget: QWidget) -> str:
    return str(getattr(widget, "text", str)())


def _middle(widget: QWidget) -> tuple[int, int]:
    scale = widget.devicePixelRatioF()
    at = widget.mapToGlobal(widget.rect().center())
    return round(at.x() * scale), round(at.y() * scale)


def main(home: Path) -> int:
    out = os.dup(1)
    os.dup2(2, 1)  # nobody else answers
    opened = start.Desktop.open

    def open_(self: start.Desktop, *args: Any) -> None:
        opened(self, *args)
        self.window.setProperty("teller", Teller(self, out))

    start.Desktop.open = open_  # type: ignore[method-assign]
    QApplication.setHighDpiScaleFactorRoundingPolicy(Qt.HighDpiScaleFactorRoundingPolicy.PassThrough)
    return start.run(home)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
