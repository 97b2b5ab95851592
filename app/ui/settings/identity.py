"""The window's control of the owner's identity. Each action is a process of its own (./shoal identity), so that
keys and keyrings stay out of the window; only recovery words that somebody wants to see enter it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal

from app.ui.language.spoken import spoken
from app.ui.language.texts import tr
from app.ui.process.child import Child
from app.ui.view.parts import Persona

MAX_LINE = 2**16
WAIT_S = 15
"""Seconds that a node may take to end before another identity is used."""

MakeChild = Callable[[], Child]


class IdentityControl(QObject):
    """`changed` emits the new Persona. The node has to end at `resting`, and may start again at `awake`."""

    changed = Signal(object)
    resting = Signal()
    awake = Signal()

    def __init__(self, home: Path, child: MakeChild = lambda: Child(MAX_LINE)) -> None:
        super().__init__()
        self._home = home
        self.persona = Persona()
        self._reader, self._teller, self._doer = child(), child(), child()
        self._reader.line.connect(self._read)
        self._teller.line.connect(self._told)
        self._teller.ended.connect(self._has_told)
        self._doer.line.connect(self._read)
        self._doer.ended.connect(self._did)
        self._reader.ended.connect(self._has_read)
        self._then: Callable[[str], None] | None = None

    def refresh(self) -> None:
        """Looks up where the key is, in the background."""
        if not self._reader.running and not self.persona.busy:
            self._start(self._reader, "--json")

    def words(self, then: Callable[[str], None]) -> None:
        """Passes the recovery words to `then`. The person has agreed to see them."""
        if not self._teller.running:
            self._then = then
            self._change(failed="")
            self._start(self._teller, "show", "--yes")

    def restore(self, words: str) -> None:
        """Restores the identity of these words, or of the passphrase of a sealed key. The person has agreed."""
        line = " ".join(words.split()).encode("utf-8", "replace")
        self._replace("restore", line + b"\n\n")

    def renew(self) -> None:
        """Makes a new name. The person has agreed."""
        self._replace("new", b"")

    def close(self) -> None:
        """For the window's end: returns when every process has ended."""
        self.blockSignals(True)
        self._then = None
        for one in (self._reader, self._teller, self._doer):
            one.blockSignals(True)
            one.end(wait=True)

    def _replace(self, verb: str, said: bytes) -> None:
        if self.persona.busy:
            return
        self._change(busy=True, failed="")
        self.resting.emit()
        self._start(self._doer, verb, "--yes", "--json", "--wait", str(WAIT_S))
        if said:
            self._doer.write(said)

    def _start(self, child: Child, *words: str) -> None:
        child.start(["identity", *words, "--home", str(self._home)], hear=True)

    def _read(self, line: bytes) -> None:
        try:
            found = msgspec.json.decode(line, type=Persona)
        except msgspec.MsgspecError:
            return
        self._change(name=found.name, kept=found.kept, file=found.file, asked=True)

    def _has_read(self, code: int) -> None:
        if code != 0:
            self._change(asked=True, failed=self._why(self._reader))

    def _told(self, line: bytes) -> None:
        then, self._then = self._then, None
        if then is not None:
            then(line.decode("ascii", "replace").strip())

    def _has_told(self, code: int) -> None:
        self._then = None
        if code != 0:
            self._change(failed=self._why(self._teller))

    def _did(self, code: int) -> None:
        self._change(busy=False, failed=self._why(self._doer) if code != 0 else "")
        self.awake.emit()

    def _why(self, child: Child) -> str:
        return spoken(child.complaint) or tr("That didn't work: try again.")

    def _change(self, **fields: object) -> None:
        self.persona = msgspec.structs.replace(self.persona, **fields)
        self.changed.emit(self.persona)
