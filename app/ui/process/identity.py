"""The window's control of the owner's identity. Each action is a job (./shoal identity), so keys and keyrings
stay out of the window; only recovery words that somebody wants to see enter it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app.ui.language.texts import tr, translated
from app.ui.process.job import Job, JobControl, decoded
from app.ui.view.view import Persona

WAIT_S = 15
"""Maximum seconds to wait for a node to end before another identity is used."""


class IdentityControl(JobControl[Persona]):
    """Controls the identity. Its jobs have no log, because their output may be secret."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, Persona(), log="", reads=["identity", "--json", "--home", str(home)])
        self._teller = self._job(self._told, self._has_told)
        self._doer = self._job(self._read, self._did)
        self._then: Callable[[str], None] | None = None

    def words(self, then: Callable[[str], None]) -> None:
        """Passes the recovery words to `then`. Call it only after the person has agreed to see them."""
        if not self._teller.running:
            self._then = then
            self._change(failed="")
            self._teller.start(["identity", "show", "--yes", "--home", str(self._home)])

    def restore(self, words: str) -> None:
        """Restores the identity that these words belong to. Call it only after the person has agreed."""
        line = " ".join(words.split()).encode("utf-8", "replace")
        self._replace("restore", line + b"\n\n")

    def renew(self) -> None:
        """Creates an identity with a new name. Call it only after the person has agreed."""
        self._replace("new", b"")

    def _replace(self, verb: str, said: bytes) -> None:
        if self.state.busy:
            return
        self._change(busy=True, failed="")
        self.resting.emit()
        wait = ["--wait", str(WAIT_S)]
        self._doer.start(["identity", verb, "--yes", "--json", *wait, "--home", str(self._home)])
        self._doer.write(said)

    def _read(self, line: bytes) -> None:
        if (found := decoded(line, Persona)) is not None:
            self._change(name=found.name, kept=found.kept, file=found.file, asked=True)

    def _has_read(self, code: int) -> None:
        if code != 0:
            self._change(asked=True, failed=_why(self._reader))
        super()._has_read(code)

    def _told(self, line: bytes) -> None:
        then, self._then = self._then, None
        if then is not None:
            then(line.decode("ascii", "replace").strip())

    def _has_told(self, code: int) -> None:
        self._then = None
        if code != 0:
            self._change(failed=_why(self._teller))

    def _did(self, code: int) -> None:
        self._change(busy=False, failed=_why(self._doer) if code != 0 else "")
        self.awake.emit()


def _why(job: Job) -> str:
    return translated(job.complaint) or tr("That didn't work: try again.")
