"""The window's control of new versions of Shoal. Checking is a job (./shoal update), so the window opens no
socket.

It checks automatically at most once a day, only if its owner agreed to that, and never while learning alone."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QTimer

from app.common import job
from app.install import InstallError
from app.install.updates import asking, installed
from app.install.updates.feed import Trust, trust
from app.ui.language.texts import tr, translated
from app.ui.process.job import Job, JobControl, MakeJob
from app.ui.view.settings import Choices
from app.ui.view.view import UpdateStage, UpdateView

FIRST_MS, HOUR_MS = 120_000, 3_600_000
"""Milliseconds from opening the window to the first look whether an update check is due, and between later
ones."""


class UpdateControl(JobControl[UpdateView]):
    """Checks for new versions of Shoal and keeps what the person decided about it."""

    def __init__(
        self,
        home: Path,
        choices: Choices,
        options: Sequence[str] = (),
        believe: Trust | None = None,
        make: MakeJob = Job,
    ) -> None:
        """`options` of ./shoal update and `believe` replace what the build wrote."""
        view = UpdateView(version=installed.version())
        super().__init__(home, view, "updates.log", make)
        self._choices, self._options = choices, list(options)
        with contextlib.suppress(InstallError):
            believe = believe or trust()
        if believe is not None:
            known = dict(host=believe.host, request=believe.request, **self._remembered())
            self.state = msgspec.structs.replace(view, stage=UpdateStage.IDLE, **known)
        self._doer = self._job(self._heard, self._ended)
        self._failure = ""
        self._by_person = False
        self._clock = QTimer(self, interval=HOUR_MS)
        self._clock.timeout.connect(self.look_if_due)

    def open(self) -> None:
        """Looks every hour whether a check is due."""
        self.changed.emit(self.state)
        if self.state.stage is not UpdateStage.CHECKOUT:
            QTimer.singleShot(FIRST_MS, self, self.look_if_due)
            self._clock.start()

    def look_if_due(self) -> None:
        """Checks for an update if a check is due, the owner agreed, and the node does not learn alone."""
        alone = self._choices["company"] == "alone"
        if self._choices["updates"] and not alone and asking.read_known(self._home).due(time.time()):
            self.check(by_person=False)

    def check(self, by_person: bool = True) -> None:
        if self.state.stage is not UpdateStage.IDLE:
            return
        self._failure, self._by_person = "", by_person
        self._change(stage=UpdateStage.ASKING, sentence="")
        self._doer.start(
            ["update", "--json", "--attached", "--home", str(self._home), *self._options], self._log
        )

    def cancel_check(self) -> None:
        if self.state.stage is UpdateStage.ASKING:
            self._doer.end()
            self._change(stage=UpdateStage.IDLE, **self._remembered())

    def cancel_automatic_check(self) -> None:
        """Ends a running automatic check, because the node now learns alone."""
        if not self._by_person:
            self.cancel_check()

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

    def _heard(self, line: bytes) -> None:
        match job.read(line):
            case job.Failed(sentence=sentence):
                self._failure = translated(sentence)

    def _ended(self, code: int) -> None:
        if code != 0 and not self._failure:
            self._failure = tr("That didn't work. The log in Settings says why.")
        shown = code != 0 and self._by_person  # nobody waits for an automatic check
        self._change(stage=UpdateStage.IDLE, sentence=self._failure if shown else "", **self._remembered())

    def _remembered(self) -> dict[str, Any]:
        """Returns the fields of UpdateView that are stored in files."""
        seen, memory = asking.read_known(self._home), self._choices.memory
        offer, own = seen.offer, installed.version_key(installed.version())
        return {
            "offer": offer if offer is not None and installed.version_key(offer.version) > own else None,
            "answered": seen.answered,
            "wanted": bool(self._choices["updates"]),
            "undecided": not memory.updates_asked and not self._choices["updates"],
            "hidden": memory.updates_hidden,
        }
