"""The window's control of an installed app's engine: checking, installing, repairing, removing. Each
is a job (./shoal pack); partial downloads are kept, and the next job resumes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import Signal

from app.common import job
from app.install.packs import place
from app.ui.language.texts import tr, translated
from app.ui.process.job import Job, JobControl, MakeJob, decoded, updated_transfer
from app.ui.process.logs import PACK
from app.ui.view.view import EnginePack, PackActivity, Problem


class EngineControl(JobControl[EnginePack]):
    """Controls the engine. `ready` is emitted when another engine, or a repaired one, is in use."""

    ready = Signal()

    def __init__(self, home: Path, make: MakeJob = Job) -> None:
        super().__init__(home, EnginePack(**_looked_up()), PACK, make, reads=["pack", "list", "--json"])
        self._doer = self._job(self._heard, self._did)
        self._checker = self._job(self._checked, lambda code: None)
        self._command: list[str] = []
        self._failure = ""

    def install(self, name: str, folder: str = "") -> None:
        """Installs a pack and uses it, from `folder` if one is given; with only a folder, repairs a broken
        engine from it. Call it only after the person has agreed."""
        offline = ["--offline", folder] if folder else []
        if self.state.broken and not name:
            self._do(["repair", *offline])
        else:
            self._do(["install", *([name] if name else []), *offline])

    def repair(self) -> None:
        self._do(["repair"])

    def remove(self) -> None:
        """Removes the engine; a node would keep its files open."""
        if self.state.doing is None:
            self.resting.emit()
            self._do(["remove", "--yes"])

    def retry(self) -> None:
        """Repeats the last failed action, from where it stopped."""
        if self._command:
            self._do(self._command)

    def cancel(self) -> None:
        """Stops the current operation; downloads are kept."""
        if self.state.doing is not None:
            self._doer.end()
            self._look_again(doing=None)

    def obstacle(self) -> Problem | None:
        """Looks for the engine. Returns a Problem if there is none, because nothing can be learned then; else
        None."""
        self._notice_loss()
        if self.state.there:
            return None
        return Problem(
            title=tr("The engine isn't installed"),
            sentence=tr("Shoal needs an engine to learn. There's none on this computer yet."),
            remedy=tr("Install it. What your model learned is safe."),
        )

    def check(self) -> None:
        """Checks in the background whether the engine still loads. Call it after a node has failed."""
        self._notice_loss()
        if self.state.there and self.state.doing is None and not self._checker.running:
            self._checker.start(["pack", "check", "--json"], self._log)

    def _do(self, command: list[str]) -> None:
        if self.state.doing is not None:
            return
        self._command, self._failure = command, ""
        doing = PackActivity(verb=command[0], offline="--offline" in command)
        self._change(doing=doing, failed="", failed_offline=False)
        self._doer.start(["pack", *command, "--json", "--attached"], self._log)

    def _heard(self, line: bytes) -> None:
        doing = self.state.doing
        if doing is None:
            return
        match event := job.read(line):
            case job.Progress():
                doing = msgspec.structs.replace(
                    updated_transfer(doing, event), stage=event.stage, percent=event.percent
                )
            case job.Waiting():
                doing = updated_transfer(doing, event)
            case job.Failed():
                self._failure = translated(event.sentence)
            case job.Done():
                doing = msgspec.structs.replace(doing, percent=100)
        self._change_soon(doing=doing)

    def _did(self, code: int) -> None:
        verb = self.state.doing.verb if self.state.doing is not None else ""
        if code == 0:
            self._command = []
            self._look_again(doing=None, broken="")
            if verb != "remove" or self.state.there:
                self.ready.emit()
            return
        said = self._failure or tr("It stopped halfway. Nothing is lost: try again.")
        self._look_again(doing=None, failed=said, failed_offline="--offline" in self._command)

    def _checked(self, line: bytes) -> None:
        event = job.read(line)
        if isinstance(event, job.Failed | job.Done):
            self._look_again(broken=translated(event.sentence) if isinstance(event, job.Failed) else "")

    def _look_again(self, **fields: object) -> None:
        """Reads again which engines are on the disk."""
        self._change(**{**fields, **_looked_up()})
        self.refresh()

    def _notice_loss(self) -> None:
        """Checks whether another process has removed or installed the engine."""
        if (place.python() is not None) != self.state.there:
            self._look_again(broken="")

    def _read(self, line: bytes) -> None:
        if (standing := decoded(line, place.PackStatus)) is not None:
            self._change(standing=standing)


def _looked_up() -> dict[str, Any]:
    """Returns the fields of EnginePack that need no other process."""
    return {"there": place.python() is not None, "named": bool(place.current(place.folder()).current)}
