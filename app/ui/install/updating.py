"""The window's control of new versions of Shoal. Each action is a process of its own (./shoal update), so that
the window opens no socket.

It checks automatically at most once a day, only if its owner agreed to that, and never while learning alone."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from app.common.rate import TransferSpeed
from app.install import InstallError
from app.install.updates import asking, installed
from app.install.updates.asking import UpdateOffer
from app.install.updates.feed import Trust, trust
from app.ui.language.spoken import spoken
from app.ui.language.texts import tr
from app.ui.process.child import Child, MakeChild
from app.ui.view.settings import Choices
from app.ui.view.view import UpdateStage, UpdateView

MAX_LINE = 2**18
TICK_MS = 250
FIRST_MS, HOUR_MS = 120_000, 3_600_000
"""After the window has opened, and from then on: whether a question is due."""


class Updating(QObject):
    """`changed` emits the new UpdateView. `resting` comes before the system's installer is started, `awake` if
    it installed nothing, `handed` if it did, with "restart" or "quit"."""

    changed = Signal(object)
    resting = Signal()
    awake = Signal()
    handed = Signal(str)

    def __init__(
        self,
        home: Path,
        choices: Choices,
        options: Sequence[str] = (),
        believe: Trust | None = None,
        child: MakeChild = lambda: Child(MAX_LINE),
    ) -> None:
        """`options` of ./shoal update and `believe` replace what the build wrote."""
        super().__init__()
        self._home, self._choices, self._options = home, choices, list(options)
        with contextlib.suppress(InstallError):
            believe = believe or trust()
        version, form = installed.version(), installed.form()
        self.update_view = UpdateView(version=version, form=form)
        if believe is not None:
            self._set(stage=UpdateStage.IDLE, host=believe.host, request=believe.request, **self._remembered())
        self._child = child()
        self._child.line.connect(self._heard)
        self._child.ended.connect(self._ended)
        self._speed = TransferSpeed()
        self._failure = self._then = ""
        self._by_person = False
        self._tick = QTimer(self, singleShot=True, interval=TICK_MS)
        self._tick.timeout.connect(lambda: self.changed.emit(self.update_view))
        self._clock = QTimer(self, interval=HOUR_MS)
        self._clock.timeout.connect(self.look_if_due)

    def open(self) -> None:
        """Checks automatically from now on, if allowed. Files downloaded for the version now installed are
        deleted."""
        self.changed.emit(self.update_view)
        if self.update_view.offer is None:
            asking.clear_folder(self._home)
        if self.update_view.stage is not UpdateStage.CHECKOUT:
            QTimer.singleShot(FIRST_MS, self, self.look_if_due)
            self._clock.start()

    def look_if_due(self) -> None:
        """Checks if the owner agreed, the node does not learn alone, and a day has passed."""
        alone = self._choices["company"] == "alone"
        if self._choices["updates"] and not alone and asking.read_known(self._home).due(time.time()):
            self._start(UpdateStage.ASKING, "--check", by_person=False)

    def check(self) -> None:
        self._start(UpdateStage.ASKING, "--check")

    def fetch(self) -> None:
        self._start(UpdateStage.FETCHING, "--fetch")

    def install(self) -> None:
        """Passes the file to the system's installer; learning pauses meanwhile."""
        if self.update_view.stage is UpdateStage.IDLE:
            self.resting.emit()
            self._start(UpdateStage.INSTALLING, "--install")

    def cancel(self) -> None:
        """Stops a download; what has arrived is kept. A started installer is not ended."""
        if self.update_view.stage in (UpdateStage.ASKING, UpdateStage.FETCHING):
            self._child.end()
            self._change(stage=UpdateStage.IDLE, note="", per_second=None, **self._remembered())

    def left_company(self) -> None:
        """It learns alone from now on: a check that nobody pressed a button for is ended."""
        if self.update_view.stage is UpdateStage.ASKING and not self._by_person:
            self.cancel()

    def decide(self, wanted: bool) -> None:
        with contextlib.suppress(OSError):  # it is asked again then
            self._choices.put("updates", wanted)
            self._choices.remember(updates_asked=True)
        self._change(**self._remembered())
        if wanted:
            self.look_if_due()

    def hide(self, version: str) -> None:
        with contextlib.suppress(OSError):
            self._choices.remember(updates_hidden=version)
        self._change(hidden=version)

    def close(self) -> None:
        """For the window's end. A download ends and is kept, an installer continues."""
        self.blockSignals(True)
        self._tick.stop()
        self._clock.stop()
        self._child.blockSignals(True)
        if self.update_view.stage is not UpdateStage.INSTALLING:
            self._child.end(wait=True)

    def folder(self) -> Path:
        return self._home / asking.FOLDER

    def _start(self, stage: UpdateStage, verb: str, by_person: bool = True) -> None:
        if self.update_view.stage is not UpdateStage.IDLE:
            return
        self._failure = self._then = ""
        self._by_person = by_person
        self._speed.restart()
        self._change(stage=stage, note="", sentence="", said="", command="", per_second=None)
        attached = ["--reopen"] if stage is UpdateStage.INSTALLING else ["--attached"]
        log = self._home / "logs" / "updates.log" if self._home.is_dir() else None
        self._child.start(["update", verb, "--json", *attached, "--home", str(self._home), *self._options], log)

    def _heard(self, line: bytes) -> None:
        try:
            event: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.MsgspecError:
            return
        match event.get("event"):
            case "checked":
                offer = msgspec.convert(event["offer"], UpdateOffer | None)
                self._set(offer=offer, have=0 if offer is None else self.update_view.have)
            case "progress":
                have = int(event["have"])
                self._set(have=have, per_second=self._speed.at(have, int(event["total"]))[0], note="")
            case "waiting":
                self._set(note=spoken(str(event["sentence"])), per_second=None)
            case "installing":
                self._set(note=spoken(str(event["sentence"])))
            case "handed":
                self._then = str(event["then"])
                self._set(said=spoken(str(event["sentence"])), command=str(event["command"]))
            case "failed":
                self._failure = spoken(str(event["sentence"]))
        if not self._tick.isActive():
            self._tick.start()

    def _ended(self, code: int) -> None:
        stage = self.update_view.stage
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
        """What the files say."""
        seen, memory = asking.read_known(self._home), self._choices.memory
        offer = seen.offer
        if offer is not None and installed.ordered(offer.version) <= installed.ordered(installed.version()):
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

    def refresh(self) -> None:
        """A choice was changed elsewhere."""
        if self.update_view.stage is not UpdateStage.CHECKOUT:
            self._change(**self._remembered())

    def _set(self, **fields: object) -> None:
        self.update_view = msgspec.structs.replace(self.update_view, **fields)

    def _change(self, **fields: object) -> None:
        self._set(**fields)
        self._tick.stop()
        self.changed.emit(self.update_view)
