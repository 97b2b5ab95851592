"""The window's control of the engine of an installed app: looking, installing, repairing, going back, removing.

Each is a process of its own (./shoal pack), which ends with the window; downloads are kept, and the next
process resumes them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from app.common.rate import TransferSpeed
from app.install.packs import events, place
from app.ui.language.spoken import spoken
from app.ui.language.texts import tr
from app.ui.process.child import Child, MakeChild, decoded
from app.ui.process.logs import PACK
from app.ui.view.view import EnginePack, PackActivity, Problem

MAX_LINE = 2**20
TICK_MS = 200
"""Minimum milliseconds between updates of the progress shown."""

_EVENT: Any = events.Told


class Packing(QObject):
    """`changed` emits the new EnginePack; `ready` that another engine, or a repaired one, is in use."""

    changed = Signal(object)
    ready = Signal()

    def __init__(
        self,
        home: Path,
        child: MakeChild = lambda: Child(MAX_LINE),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._home = home
        self.pack = EnginePack(**_looked_up())
        self._reader, self._doer, self._checker = child(), child(), child()
        self._reader.line.connect(self._read)
        self._reader.ended.connect(lambda _: self._has_read())
        self._doer.line.connect(self._heard)
        self._doer.ended.connect(self._did)
        self._checker.line.connect(self._checked)
        self._again = False
        self._command: list[str] = []
        self._sentence = ""
        self._speed = TransferSpeed(clock)
        self._tick = QTimer(self, singleShot=True, interval=TICK_MS)
        self._tick.timeout.connect(lambda: self.changed.emit(self.pack))

    def refresh(self) -> None:
        """Looks again what is installed and available, in the background and without the network."""
        if self._reader.running:
            self._again = True
            return
        self._again = False
        self._reader.start(["pack", "list", "--json"], self._log)

    def install(self, name: str, folder: str = "") -> None:
        """Installs a pack and uses it, from a folder if one is named. The owner has agreed. With only a folder,
        a broken engine is repaired from it."""
        offline = ["--offline", folder] if folder else []
        if self.pack.broken and not name:
            self._do(["repair", *offline])
        else:
            self._do(["install", *([name] if name else []), *offline])

    def repair(self) -> None:
        self._do(["repair"])

    def rollback(self) -> None:
        self._do(["rollback"])

    def remove(self, pack: str) -> None:
        """Removes one pack, or all of them."""
        self._do(["remove", *([pack] if pack else []), "--yes"])

    def retry(self) -> None:
        """Tries what failed again, from where it stopped."""
        if self._command:
            self._do(self._command)

    def put_elsewhere(self, folder: str) -> None:
        """Stores engines in this folder from now on. What had failed is tried again there."""
        try:
            place.choose(Path(folder) if not _filled(Path(folder)) else Path(folder) / "shoal-engine")
        except OSError as error:
            said = tr("That folder doesn't work ({why}). Pick another one.", why=error.strerror)
            self._change(failed=said, failed_offline=False)
            return
        again = bool(self.pack.failed)
        self._settle(failed="", failed_offline=False)
        if again:
            self.retry()

    def cancel(self) -> None:
        """Stops the current operation; downloads are kept."""
        if self.pack.doing is not None:
            self._doer.end()
            self._settle(doing=None)

    def obstacle(self) -> Problem | None:
        """Why nothing can be learned at the moment, looked up now."""
        self._look()
        if self.pack.there:
            return None
        return Problem(
            title=tr("The engine isn't installed"),
            sentence=tr("Shoal needs an engine to learn. There's none on this computer yet."),
            remedy=tr("Install it. What your model learned is safe."),
        )

    def check(self) -> None:
        """Learning has failed: finds out in the background whether the engine is at fault."""
        self._look()
        if self.pack.there and self.pack.doing is None and not self._checker.running:
            self._checker.start(["pack", "check", "--json"], self._log)

    def close(self) -> None:
        """For the window's end: returns when every process has ended."""
        self.blockSignals(True)
        self._tick.stop()
        for one in (self._reader, self._doer, self._checker):
            one.blockSignals(True)
            one.end(wait=True)

    @property
    def _log(self) -> Path | None:
        return self._home / "logs" / PACK if self._home.is_dir() else None

    def _do(self, command: list[str]) -> None:
        if self.pack.doing is not None:
            return
        self._command, self._sentence = command, ""
        self._speed.restart()
        doing = PackActivity(verb=command[0], offline="--offline" in command)
        self._change(doing=doing, failed="", failed_offline=False)
        self._doer.start(["pack", *command, "--json", "--attached"], self._log)

    def _heard(self, line: bytes) -> None:
        doing, event = self.pack.doing, decoded(line, _EVENT)
        if doing is None:
            return
        match event:
            case events.PackProgress():
                rate, left = self._speed.at(event.have, event.total) if event.stage == "fetch" else (None, None)
                told = {name: getattr(event, name) for name in ("stage", "percent", "have", "total")}
                doing = msgspec.structs.replace(doing, **told, per_second=rate, left_s=left, note="")
            case events.PackWaiting():
                self._speed.restart()
                note = spoken(event.sentence)
                doing = msgspec.structs.replace(doing, note=note, per_second=None, left_s=None)
            case events.PackFailed():
                self._sentence = spoken(event.sentence)
            case events.PackDone():
                doing = msgspec.structs.replace(doing, percent=100)
        self.pack = msgspec.structs.replace(self.pack, doing=doing)
        if not self._tick.isActive():
            self._tick.start()

    def _did(self, code: int) -> None:
        verb = self.pack.doing.verb if self.pack.doing is not None else ""
        if code == 0:
            self._command = []
            self._settle(doing=None, broken="")
            if verb != "remove" or self.pack.there:
                self.ready.emit()
            return
        said = self._sentence or tr("It stopped halfway. Nothing is lost: try again.")
        self._settle(doing=None, failed=said, failed_offline="--offline" in self._command)

    def _checked(self, line: bytes) -> None:
        event = decoded(line, _EVENT)
        if isinstance(event, events.PackFailed | events.PackDone):
            self._settle(broken=spoken(event.sentence) if isinstance(event, events.PackFailed) else "")

    def _settle(self, **fields: object) -> None:
        """An operation has ended: refreshes what is on the disk."""
        self._change(**{**fields, **_looked_up()})
        self.refresh()

    def _look(self) -> None:
        there = place.python() is not None
        if there != self.pack.there:
            self._settle(broken="")

    def _read(self, line: bytes) -> None:
        if (standing := decoded(line, events.PackStatus)) is not None:
            self._change(standing=standing)

    def _has_read(self) -> None:
        if self._again:
            self.refresh()

    def _change(self, **fields: object) -> None:
        self.pack = msgspec.structs.replace(self.pack, **fields)
        self._tick.stop()
        self.changed.emit(self.pack)


def _looked_up() -> dict[str, Any]:
    """What is known without asking another process."""
    return {"there": place.python() is not None, "named": bool(place.current(place.folder()).current)}


def _filled(folder: Path) -> bool:
    """Whether the folder already has something else in it."""
    try:
        return any(folder.iterdir())
    except OSError:
        return False
