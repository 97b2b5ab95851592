"""The window's control of new versions of Shoal. Each action is a job (./shoal update), so the window opens no
socket.

It checks automatically at most once a day, only if its owner agreed to that, and never while learning alone."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QTimer, Signal

from app.common import job
from app.install import InstallError
from app.install.updates import asking, installed
from app.install.updates.asking import UpdateOffer
from app.install.updates.feed import Trust, trust
from app.ui.language.texts import tr, translated
from app.ui.process.job import Job, JobControl, MakeJob, decoded, updated_transfer
from app.ui.view.settings import Choices
from app.ui.view.view import UpdateStage, UpdateView

FIRST_MS, HOUR_MS = 120_000, 3_600_000
"""Milliseconds from opening the window to the first look whether an update check is due, and between later
ones."""


class UpdateControl(JobControl[UpdateView]):
    """Controls new versions of Shoal. The system's installer runs between `resting` and `awake`; if it
    installed something, `handed` comes instead of `awake`, with "restart" or "quit"."""

    handed = Signal(str)

    def __init__(
        self,
        home: Path,
        choices: Choices,
        options: Sequence[str] = (),
        believe: Trust | None = None,
        make: MakeJob = Job,
    ) -> None:
        """`options` of ./shoal update and `believe` replace what the build wrote."""
        view = UpdateView(version=installed.version(), form=installed.form())
        super().__init__(home, view, "updates.log", make)
        self._choices, self._options = choices, list(options)
        with contextlib.suppress(InstallError):
            believe = believe or trust()
        if believe is not None:
            known = dict(host=believe.host, request=believe.request, **self._remembered())
            self.state = msgspec.structs.replace(view, stage=UpdateStage.IDLE, **known)
        self._doer = self._job(self._heard, self._ended)
        self._failure = self._then = ""
        self._by_person = False
        self._clock = QTimer(self, interval=HOUR_MS)
        self._clock.timeout.connect(self.look_if_due)

    def open(self) -> None:
        """Looks every hour whether a check is due. Deletes downloads now if no newer version is known."""
        self.changed.emit(self.state)
        if self.state.offer is None:
            asking.clear_folder(self._home)
        if self.state.stage is not UpdateStage.CHECKOUT:
            QTimer.singleShot(FIRST_MS, self, self.look_if_due)
            self._clock.start()

    def look_if_due(self) -> None:
        """Checks for an update if a check is due, the owner agreed, and the node does not learn alone."""
        alone = self._choices["company"] == "alone"
        if self._choices["updates"] and not alone and asking.read_known(self._home).due(time.time()):
            self._start(UpdateStage.ASKING, "--check", by_person=False)

    def check(self) -> None:
        self._start(UpdateStage.ASKING, "--check")

    def fetch(self) -> None:
        self._start(UpdateStage.FETCHING, "--fetch")

    def install(self) -> None:
        """Passes the downloaded file to the system's installer; learning pauses until that is done."""
        if self.state.stage is UpdateStage.IDLE:
            self.resting.emit()
            self._start(UpdateStage.INSTALLING, "--install")

    def cancel(self) -> None:
        """Stops a download; what has arrived is kept. A started installer is not ended."""
        if self.state.stage in (UpdateStage.ASKING, UpdateStage.FETCHING):
            self._doer.end()
            self._change(stage=UpdateStage.IDLE, note="", per_second=None, **self._remembered())

    def cancel_automatic_check(self) -> None:
        """Ends a running automatic check, because the node now learns alone."""
        if self.state.stage is UpdateStage.ASKING and not self._by_person:
            self.cancel()

    def decide(self, wanted: bool) -> None:
        with contextlib.suppress(OSError):  # it is asked again then
            self._choices.put("updates", wanted)
            self._choices.remember_window(updates_asked=True)
        self._change(**self._remembered())
        if wanted:
            self.look_if_due()

    def hide(self, version: str) -> None:
        with contextlib.suppress(OSError):
            self._choices.remember_window(updates_hidden=version)
        self._change(hidden=version)

    def close(self) -> None:
        """Ends a download, keeping its files; a started installer continues."""
        if self.state.stage is UpdateStage.INSTALLING:
            self._jobs.remove(self._doer)
        super().close()

    def folder(self) -> Path:
        return self._home / asking.FOLDER

    def _start(self, stage: UpdateStage, verb: str, by_person: bool = True) -> None:
        if self.state.stage is not UpdateStage.IDLE:
            return
        self._failure = self._then = ""
        self._by_person = by_person
        self._change(stage=stage, have=0, note="", sentence="", said="", command="", per_second=None)
        attached = "--reopen" if stage is UpdateStage.INSTALLING else "--attached"
        words = ["update", verb, "--json", attached, "--home", str(self._home), *self._options]
        self._doer.start(words, self._log)

    def _heard(self, line: bytes) -> None:
        match event := job.read(line):
            case job.Progress() | job.Waiting():
                self.state = updated_transfer(self.state, event)
            case job.Failed():
                self._failure = translated(event.sentence)
        told = decoded(line, dict[str, Any]) or {}
        match told.get("event"):
            case "checked":
                self._change_soon(offer=msgspec.convert(told["offer"], UpdateOffer | None))
            case "installing":
                self._change_soon(note=translated(str(told["sentence"])))
            case "handed":
                self._then = str(told["then"])
                self._change_soon(said=translated(str(told["sentence"])), command=str(told["command"]))
            case _:
                self._change_soon()

    def _ended(self, code: int) -> None:
        stage = self.state.stage
        if code != 0 and not self._failure:
            self._failure = tr("That didn't work. The log in Settings says why.")
        quiet = stage is UpdateStage.ASKING and not self._by_person  # no one waits for this answer
        self._change(
            stage=UpdateStage.IDLE,
            note="",
            per_second=None,
            sentence="" if quiet or code == 0 else self._failure,
            **self._remembered(),
        )
        if stage is UpdateStage.INSTALLING:
            if code == 0 and self._then in ("restart", "quit"):
                self.handed.emit(self._then)
            else:
                self.awake.emit()

    def _remembered(self) -> dict[str, Any]:
        """Returns the fields of UpdateView that are stored in files."""
        seen, memory = asking.read_known(self._home), self._choices.memory
        offer = seen.offer
        if offer is not None and installed.version_key(offer.version) <= installed.version_key(
            installed.version()
        ):
            offer = None
        fetched = False
        if offer is not None and offer.file:
            with contextlib.suppress(OSError):
                fetched = (self.folder() / Path(offer.file).name).stat().st_size == offer.size
        return {
            "offer": offer,
            "fetched": fetched,
            "answered": seen.answered,
            "wanted": bool(self._choices["updates"]),
            "undecided": not memory.updates_asked and not self._choices["updates"],
            "hidden": memory.updates_hidden,
        }
