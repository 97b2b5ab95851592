"""Reads a model's past beside the window's own work: a large history takes a moment."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.node.data.library import history_of
from app.node.history import history

READING_S = 5.0
"""Seconds that the window's end waits for a history that is still being read."""


class HistoryReader(QObject):
    """`read` emits the History of the model that was asked for."""

    read = Signal(object)

    def __init__(self, home: Path) -> None:
        super().__init__()
        self._home = home
        self._readers: list[threading.Thread] = []

    def look(self, model: str) -> None:
        """Reads it again in the background. Returns immediately."""

        def work() -> None:
            found = history.read(history_of(self._home, model))
            with contextlib.suppress(RuntimeError):  # the window is gone
                self.read.emit(found)

        self._readers = [reader for reader in self._readers if reader.is_alive()]
        self._readers.append(threading.Thread(target=work, daemon=True))
        self._readers[-1].start()

    def close(self) -> None:
        """Waits for the reading thread, which must not be the last to hold this object."""
        for reader in self._readers:
            reader.join(READING_S)
