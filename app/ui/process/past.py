"""Reads in the background: a model's history, because a large one takes a moment, and the texts of questions of
which only the coordinates are known.

The texts are regenerated in a child process, which keeps the library out of the window's memory and ends when
it has not been used for a while."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.node.data import question_sets
from app.node.data.home import skill_folder
from app.node.data.library import history_of
from app.node.history import history
from app.sapo.questions import Coordinates, QuestionPrompt
from app.sapo.scoring.sandbox import Sandbox, SandboxError

READING_S = 5.0
"""Maximum seconds that closing the window waits for a history that is still being read."""


class HistoryReader(QObject):
    """Reads histories. `read` emits the History of the requested model. If that has no rounds yet, `other`
    emits a sentence about the model that this data folder trained before."""

    read, other = Signal(object), Signal(str)

    def __init__(self, home: Path) -> None:
        super().__init__()
        self._home = home
        self._readers: list[threading.Thread] = []

    def start_reading(self, model: str, skill: str = "") -> None:
        """Starts reading this model's history, of its puzzles or of the skill of a question set with this mark,
        in the background and returns immediately."""

        def work() -> None:
            folder = history_of(self._home, model)
            if folder is not None and skill:
                folder = skill_folder(folder, "", skill)
            found, said = history.read(folder), None
            if folder is not None and not found.rounds and not skill:
                from app.node.history.resume import other_models_sentence

                said = other_models_sentence(folder)
            with contextlib.suppress(RuntimeError):  # the window is gone
                self.read.emit(found)
                if said:
                    self.other.emit(said)

        self._readers = [reader for reader in self._readers if reader.is_alive()]
        self._readers.append(threading.Thread(target=work, daemon=True))
        self._readers[-1].start()

    def close(self) -> None:
        """Waits up to READING_S for each reading thread: none may hold the last reference to this object."""
        for reader in self._readers:
            reader.join(READING_S)


MAX = 1000
"""Maximum texts remembered; the oldest are dropped first."""
AT_ONCE = 24
IDLE_MS = 20_000


class Questions(QObject):
    """Regenerates questions. `changed` emits all known texts. Questions that cannot be generated, for example
    of another version, stay unknown and are not tried again."""

    changed = Signal(object)
    _made = Signal(object)

    def __init__(self, home: Path) -> None:
        """`home` contains the person's question sets."""
        super().__init__()
        self._sets = home / question_sets.FOLDER
        self._texts: dict[Coordinates, str] = {}
        self._asked: set[Coordinates] = set()
        self._wanted: list[Coordinates] = []
        self._sandbox: Sandbox | None = None
        self._worker: threading.Thread | None = None
        self._idle = QTimer(self, singleShot=True, interval=IDLE_MS)
        self._idle.timeout.connect(self._rest)
        self._made.connect(self._take)

    def request(self, places: Iterable[Coordinates]) -> None:
        """Requests the texts of these questions, the most urgent first, and returns at once."""
        new = [place for place in dict.fromkeys(places) if place not in self._asked]
        if not new:
            return
        self._asked.update(new)
        self._wanted += new
        if self._worker is None:
            self._next()

    def close(self) -> None:
        """Ends the child process and returns when it has ended."""
        self.blockSignals(True)
        self._wanted.clear()
        self._rest()
        if self._worker is not None:
            self._worker.join()

    def _next(self) -> None:
        if not self._wanted:
            self._worker = None
            self._idle.start()
            return
        self._idle.stop()
        places, self._wanted = self._wanted[:AT_ONCE], self._wanted[AT_ONCE:]
        sandbox = self._sandbox = self._sandbox or Sandbox(sets=sorted(self._sets.glob("*.json")))

        def work() -> None:
            try:
                found = sandbox.questions(places)
            except SandboxError:  # closed, or no child can be had here: coordinates must do
                found = []
            self._made.emit({one.coordinates: one.text for one in found if isinstance(one, QuestionPrompt)})

        self._worker = threading.Thread(target=work, daemon=True)
        self._worker.start()

    def _take(self, made: Mapping[Coordinates, str]) -> None:
        self._texts |= made
        for place in list(self._texts)[: max(0, len(self._texts) - MAX)]:
            del self._texts[place]
            self._asked.discard(place)
        if made:
            self.changed.emit(dict(self._texts))
        self._next()

    def _rest(self) -> None:
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            sandbox.close()
