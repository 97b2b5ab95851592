"""Qt's application, and requests by the system: to follow a link, to come to the front, to quit.

macOS passes a link, and a click on the icon in its Dock, to the running program instead of starting another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QEventLoop, Qt, QTimer, Signal
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication

SCHEME = "shoal"
FIRST_LINK_MS = 700
"""Milliseconds to wait for a link that macOS passes with the first events, not as an argument."""
LAUNCH_MS = 3000
"""Milliseconds after the start during which being activated by macOS does not mean that somebody wants a
window."""


class Application(QApplication):
    """`asked` is a link that somebody opened. One that comes before `serve` waits."""

    asked = Signal(str)

    def __init__(self, arguments: Sequence[str], platform: str = sys.platform) -> None:
        super().__init__(list(arguments))
        self._mac = platform == "darwin"
        self._early = ""
        self._serving = False
        self._quit: Callable[[], None] | None = None

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.FileOpen and isinstance(event, QFileOpenEvent):
            self._opened(event)
            return True
        if event.type() is QEvent.Type.Quit and self._quit is not None:
            self._quit()  # else Qt closes the windows first, and takes one that stays in the tray for a refusal
        return super().event(event)

    def first_link(self) -> str:
        """The link that this program was started for, if the system passes it by an event; else empty. Waits a
        moment, so call it only without a window to show."""
        if self._mac and not self._early:
            loop = QEventLoop()
            self.asked.connect(loop.quit)
            QTimer.singleShot(FIRST_LINK_MS, loop.quit)
            loop.exec()
            self.asked.disconnect(loop.quit)
        return self._early

    def serve(self, bring: Callable[[str], None], quit: Callable[[], None], seen: Callable[[], bool]) -> None:
        """From now on `bring` is called with links, and with "" for a click on the Dock while no window is
        `seen`; `quit` before the end."""
        self._quit, self._serving = quit, True
        self.asked.connect(bring)
        if self._early:
            QTimer.singleShot(0, lambda: bring(self._early))
        if self._mac:
            QTimer.singleShot(LAUNCH_MS, lambda: self.applicationStateChanged.connect(came))

        def came(state: Qt.ApplicationState) -> None:
            if state is Qt.ApplicationState.ApplicationActive and not seen():
                bring("")

    def _opened(self, event: QFileOpenEvent) -> None:
        url = event.url()
        if url.scheme() != SCHEME:
            return
        link = bytes(url.toEncoded().data()).decode("ascii", "replace")
        if not self._serving:
            self._early = link
        self.asked.emit(link)
