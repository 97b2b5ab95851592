"""The window's chat: a job with the model, started with the first question and ended some time after the page
was last visible.

Questions and answers stay on the page and are never written to disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.chat import messages
from app.chat.messages import ChatMessageError, ModelOpened, Reply, Request
from app.ui.language.texts import tr, translated
from app.ui.process.job import Job
from app.ui.view.settings import Choices
from app.ui.view.view import missing_engine_sentence

AWAY_S = 180
"""Seconds after leaving the page during which the model stays in memory."""
STOP_S = 5
"""Seconds for an answer to stop; after that its process is ended, because it may be reading a long question."""


class ChatStage(Enum):
    AWAY = "away"
    """No process is running, so no memory is used."""
    LOADING = "loading"
    READY = "ready"
    BUSY = "busy"


class ChatControl(QObject):
    """Controls the chat process. Signals: `changed` when the stage changes, `replied` with each reply, `broke`,
    with the reason, when pending requests will get no more replies."""

    changed = Signal()
    replied = Signal(object)
    broke = Signal(str)

    def __init__(
        self,
        choices: Choices,
        job: Job | None = None,
        away_s: float = AWAY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._choices, self._clock = choices, clock
        self._job = job or Job(messages.MAX_LINE)
        self._job.line.connect(self._line)
        self._job.ended.connect(self._ended)
        self._leave = QTimer(self, singleShot=True, interval=int(away_s * 1000))
        self._leave.timeout.connect(self._leave_now)
        self._deaf = QTimer(self, singleShot=True, interval=STOP_S * 1000)
        self._deaf.timeout.connect(self._end_now)
        self._away = False
        self._number = 0
        self._open: set[int] = set()
        self._options: list[str] = []
        self._since = 0.0
        self._refusal = ""
        self.stage = ChatStage.AWAY
        self.opened: ModelOpened | None = None

    @property
    def pid(self) -> int:
        return self._job.pid

    @property
    def waited_s(self) -> float:
        """Seconds since the current stage began."""
        return self._clock() - self._since

    def ask(self, home: str, make: Callable[[int], Request]) -> int:
        """Sends a request and returns its number, starting the process if none runs with the chosen model."""
        options = self._wanted(home)
        if not self._job.running or (options != self._options and not self._open):
            self._options, self.opened, self._refusal = options, None, ""
            self._job.start(options, Path(home) / "logs" / "chat.log" if Path(home).is_dir() else None)
            self._go(ChatStage.LOADING)
        elif self.stage is ChatStage.READY:
            self._go(ChatStage.BUSY)
        self._number += 1
        self._open.add(self._number)
        self._job.write(messages.to_line(make(self._number)))
        return self._number

    def stop(self) -> None:
        """Stops the answer in progress; while the model is still loading, ends the process."""
        if self.stage is not ChatStage.BUSY:
            self._end_now()
            return
        for number in sorted(self._open):
            self._job.write(messages.to_line(messages.StopRequest(number=number)))
        self._deaf.start()

    def _end_now(self) -> None:
        self._job.kill()
        self._lost(tr("Stopped."))

    def keep_loaded(self) -> None:
        """Called when the page is shown: keeps the model in memory."""
        self._away = False
        self._leave.stop()

    def unload_later(self) -> None:
        """Called when the page is left: ends the process after AWAY_S, but not during an answer."""
        self._away = True
        if self._job.running:
            self._leave.start()

    def close(self) -> None:
        """Ends the process and returns when it has ended. Called when the window closes."""
        self._leave.stop()
        self._deaf.stop()
        self.blockSignals(True)
        self._job.end(wait=True)

    def _wanted(self, home: str) -> list[str]:
        chosen = [part for key in ("model", "engine") for part in (f"--{key}", str(self._choices[key]))]
        return ["chat", "--json", "--attached", "--home", home, *chosen]

    def _line(self, line: bytes) -> None:
        try:
            reply: Reply = messages.read_reply(line)
        except ChatMessageError:
            return  # a fault that its end will tell
        match reply:
            case ModelOpened():
                self.opened = reply
                self._go(ChatStage.BUSY if self._open else ChatStage.READY)
            case messages.ChatFailed(final=True):
                self._refusal = translated(reply.sentence)
                return
            case messages.ChatDone() | messages.ChatFailed():
                self._open.discard(reply.number)
        self.replied.emit(reply)
        if self.stage is ChatStage.BUSY and not self._open:
            self._deaf.stop()
            self._go(ChatStage.READY)
            if self._away and not self._leave.isActive():
                self._leave.start()

    def _ended(self, code: int) -> None:
        stopped = tr("The model stopped, most likely because memory ran short. Close other apps and ask again.")
        self._lost(self._refusal or missing_engine_sentence() or stopped)

    def _lost(self, sentence: str) -> None:
        waiting = bool(self._open) or bool(self._refusal)
        self._open.clear()
        self._deaf.stop()
        self._go(ChatStage.AWAY)
        if waiting:
            self.broke.emit(sentence)

    def _leave_now(self) -> None:
        if self._open:  # still at it; the end of the answer starts the time again
            return
        self._job.end()
        self._go(ChatStage.AWAY)

    def _go(self, stage: ChatStage) -> None:
        self._since = self._clock()
        if stage is ChatStage.AWAY:
            self.opened = None
        if stage is not self.stage:
            self.stage = stage
            self.changed.emit()
