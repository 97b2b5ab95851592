"""The measured trial: runs `./shoal trial` beside the window, and words for its result. It never blocks; an
owner who starts before it is done only misses the estimate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from app.ui.language.spoken import spoken
from app.ui.language.texts import counted, span, tr
from app.ui.process.child import Child
from app.ui.process.logs import tail
from engines.facts import ENGINES

MOST = 2**20
"""Maximum bytes of its one line of output."""
PATIENCE_S = 240
_TICK_MS = 250
_USUAL_S = 12.0
_TAIL = 8192


class TriedEngine(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    device: str = ""
    dtype: str = ""


class TrialReport(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of the trial's JSON that are used; see app.cli.models.trial."""

    engine: str
    reason: str = ""
    rounds_per_hour: float | None = None
    engines: list[TriedEngine] = []

    @property
    def title(self) -> str:
        """The engine and its device."""
        name = ENGINES[self.engine].title if self.engine in ENGINES else self.engine
        where = next((one.device for one in self.engines if one.name == self.engine and one.device), "")
        return tr("{engine} on {device}", engine=name, device=where) if where else name

    @property
    def pace(self) -> str:
        """The pace, no more precise than a trial of some seconds allows."""
        rate = self.rounds_per_hour
        if rate is None or not math.isfinite(rate) or rate <= 0:
            return ""
        if rate < 1:
            return tr("about {span} a round", span=span(3600 / rate))
        return counted("about {n} round an hour", "about {n} rounds an hour", _rough(rate))


class TrialStage(Enum):
    NONE = "none"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class TrialRun(QObject):
    """`changed`: something has to be shown again. `share` of the usual time has passed; `sentence` says why
    there is no estimate."""

    changed = Signal()

    def __init__(self, child: Child | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._child = child or Child(MOST)
        self._child.line.connect(self._line)
        self._child.ended.connect(self._ended)
        self._clock, self._since = clock, 0.0
        self._log: Path | None = None
        self._tick = QTimer(self, interval=_TICK_MS)
        self._tick.timeout.connect(self._pass_time)
        self.stage = TrialStage.NONE
        self.findings: TrialReport | None = None
        self.sentence = ""

    @property
    def share(self) -> float:
        return 1.0 - math.exp(-(self._clock() - self._since) / _USUAL_S)

    @property
    def seconds(self) -> float:
        return self._clock() - self._since

    def start(self, home: str, model: str, engine: str) -> None:
        """Measures this model instead of any other."""
        self._child.kill()
        self.findings, self.sentence = None, ""
        self._since = self._clock()
        self._log = Path(home) / "logs" / "trial.log"
        self._child.start(["trial", "--json", "--home", home, "--model", model, "--engine", engine], self._log)
        self._tick.start()
        self._go(TrialStage.RUNNING)

    def stop(self, wait: bool = False) -> None:
        """Ends it, because the node's own trainer needs the memory. `wait`: returns when it has ended."""
        self._tick.stop()
        self._child.kill(wait)
        if self.stage is TrialStage.RUNNING:
            self._go(TrialStage.NONE)

    def _line(self, line: bytes) -> None:
        try:
            self.findings = msgspec.json.decode(line, type=TrialReport)
        except msgspec.MsgspecError:
            return  # said by others; without a result its end tells

    def _ended(self, code: int) -> None:
        self._tick.stop()
        if code == 0 and self.findings is not None:
            self._go(TrialStage.DONE)
            return
        said = _last_words(self._log) if code in (1, 2) else ""
        self.sentence = said or tr("The speed test failed. Learning works without it.")
        self._go(TrialStage.FAILED)

    def _pass_time(self) -> None:
        if self.seconds > PATIENCE_S:
            self.stop()
            self.sentence = tr("The speed test took too long. Learning works without it.")
            self._go(TrialStage.FAILED)
        else:
            self.changed.emit()

    def _go(self, stage: TrialStage) -> None:
        self.stage = stage
        self.changed.emit()


def _rough(rate: float) -> int:
    """Rounded to two digits.

    >>> _rough(1234.0), _rough(57.4), _rough(1.4)
    (1200, 57, 1)
    """
    keep = max(0, len(str(int(rate))) - 2)
    return int(round(rate, -keep))


def _last_words(log: Path | None) -> str:
    """The last sentence that the command printed for people."""
    lines = tail(log, _TAIL).splitlines() if log is not None else []
    said = next((line for line in reversed(lines) if line.startswith("shoal")), "")
    return spoken(said.partition(": ")[2])
