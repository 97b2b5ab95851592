"""The step of the first run that measures what this computer can do, and offers the models."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QFrame, QLayout, QVBoxLayout, QWidget

from app.models.catalogue import title
from app.ui.frame.frame import Actions
from app.ui.language.texts import counted, span, tr, translated
from app.ui.models.picker import ModelPicker
from app.ui.process.job import Job, decoded
from app.ui.theme import Theme
from app.ui.view import words
from app.ui.view.view import View
from app.ui.widgets.pieces import Label, button, card, column, progress_bar, row
from app.ui.widgets.selecting import Option, OptionGroup
from engines.facts import ENGINES

PATIENCE_S = 240
_TICK_MS = 250
_USUAL_S = 12.0


class TriedEngine(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    device: str = ""
    dtype: str = ""


class TrialReport(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of the trial's JSON output that the window reads; app.cli.trial writes it."""

    engine: str
    reason: str = ""
    rounds_per_hour: float | None = None
    engines: list[TriedEngine] = []

    @property
    def device(self) -> str:
        return next((one.device for one in self.engines if one.name == self.engine and one.device), "")

    @property
    def title(self) -> str:
        """The engine and its device, as text."""
        name = ENGINES[self.engine].title if self.engine in ENGINES else self.engine
        return tr("{engine} on {device}", engine=name, device=self.device) if self.device else name

    @property
    def pace(self) -> str:
        """The pace as text, no more precise than a trial of some seconds allows."""
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
    """Runs the speed test. `changed` is emitted when something else has to be shown. `share` estimates the
    progress in [0, 1] from the usual time; `sentence` says why there is no estimate of the speed."""

    changed = Signal()

    def __init__(self, job: Job | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._job = job or Job()
        self._job.line.connect(self._line)
        self._job.ended.connect(self._ended)
        self._clock, self._since = clock, 0.0
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
        """Measures this model, stopping the trial of any other."""
        self._job.kill()
        self.findings, self.sentence = None, ""
        self._since = self._clock()
        words = ["trial", "--json", "--home", home, "--model", model, "--engine", engine]
        self._job.start(words, Path(home) / "logs" / "trial.log")
        self._tick.start()
        self._go(TrialStage.RUNNING)

    def stop(self, wait: bool = False) -> None:
        """Ends the trial, as the node's own trainer needs the memory. `wait`: returns when it has ended."""
        self._tick.stop()
        self._job.kill(wait)
        if self.stage is TrialStage.RUNNING:
            self._go(TrialStage.NONE)

    def _line(self, line: bytes) -> None:
        self.findings = decoded(line, TrialReport) or self.findings

    def _ended(self, code: int) -> None:
        self._tick.stop()
        if code == 0 and self.findings is not None:
            self._go(TrialStage.DONE)
            return
        said = self._job.complaint if code in (1, 2) else ""
        self.sentence = translated(said) or tr("The speed test failed. Learning works without it.")
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
    """Rounds to two significant digits.

    >>> _rough(1234.0), _rough(57.4), _rough(1.4)
    (1200, 57, 1)
    """
    keep = max(0, len(str(int(rate))) - 2)
    return int(round(rate, -keep))


Act = Callable[[], object]


def point(title: str, text: str) -> QFrame:
    return card(column(Label(title, "strong"), Label(text, "soft", wrap=True), 1, gap=6), "quiet", 18)


def step_text(at: int, of: int) -> str:
    return tr("Step {n} of {all}", n=at, all=of)


def step_layout(where: Label, title: str, text: str, middle: QLayout, buttons: QLayout) -> QVBoxLayout:
    """Lays out a step: its number, heading and content, and the buttons to continue and go back."""
    said = (where, Label(title, "hero", wrap=True), Label(text, "lead", wrap=True))
    return column(*said, middle, 1, buttons, gap=12, margins=(40, 26, 40, 26))


STARTER, LARGER = "starter", "larger"


class MachineStep(QWidget):
    """The step that measures this computer and lets the person choose the model."""

    def __init__(self, theme: Theme, actions: Actions, trial: TrialRun, go_on: Act, back: Act) -> None:
        super().__init__()
        self._view = View()
        self._actions, self._trial = actions, trial
        self._measured = ""
        trial.changed.connect(self._show)
        self._pace, self._engine = Label("", "figure"), Label("", "strong", wrap=True)
        self._reason = Label("", "soft", wrap=True)
        self._bar = progress_bar(tr("Progress of the speed test"))
        self._again = button(tr("Test again"), self._measure)
        speed = (self._pace, self._bar, self._engine, self._reason, row(self._again, 1))
        self._speed = card(column(*speed, 1, gap=7), "quiet", 20)
        self._models = OptionGroup(tr("Model"))
        starter = tr("Built in. Only solves puzzles. Gets visibly better within minutes, on any computer.")
        larger = tr("Talks and knows more. Learns slower. Download one, or use one you have.")
        self._models.add(STARTER, Option(theme, tr("Starter (recommended)"), starter))
        self._models.add(LARGER, Option(theme, tr("A bigger model"), larger))
        self._picker = ModelPicker(theme, actions.models)
        self._picker.picked.connect(lambda _: self._picked())
        self._picker.hide()
        models = column(self._models, self._picker, 1, gap=12)
        self._models.chosen.connect(self._chosen)
        sides = row(self._speed, models, gap=18, fill=(0, 1))
        self._on = button(tr("Continue"), go_on, "large")
        self.where = Label(step_text(2, 3), "faint")
        title, about = tr("What this computer can do"), tr("A quick speed test. No need to wait.")
        buttons = row(button(tr("Back"), back, "second"), self._on, 1, gap=10)
        self.setLayout(step_layout(self.where, title, about, sides, buttons))
        self._show()

    def arrive(self) -> None:
        self._on.setFocus()

    def show_view(self, view: View) -> None:
        self._view = view
        self._show_models()

    def _show_models(self) -> None:
        if self._models.value == LARGER:
            self._picker.show_holdings(self._view.models)
        self._on.setEnabled(self._models.value == STARTER or self._model() != STARTER or self._picker.coming)
        self._on.setToolTip("" if self._on.isEnabled() else tr("Pick a model first."))

    def begin(self) -> None:
        """Starts the measurement, once per model."""
        if self._measured != self._model():
            self._measure()

    def _picked(self) -> None:
        if self.isVisible():  # a download may end long after learning has begun
            self._measure()

    def _model(self) -> str:
        return str(self._actions.choices["model"])

    def _measure(self) -> None:
        self._measured = self._model()
        self._trial.start(self._view.home, self._measured, str(self._actions.choices["engine"]))

    def _chosen(self, value: object) -> None:
        self._picker.setVisible(value == LARGER)
        self._show_models()
        if value == STARTER and self._model() != STARTER:
            self._actions.models.choose(STARTER)
            self._measure()

    def _show(self) -> None:
        trial, found = self._trial, self._trial.findings
        running = trial.stage is TrialStage.RUNNING
        self._bar.setVisible(running)
        self._again.setVisible(trial.stage in (TrialStage.FAILED, TrialStage.DONE))
        engine = reason = ""
        if trial.stage is TrialStage.DONE and found is not None:
            self._pace.say(found.pace[:1].upper() + found.pace[1:] or tr("No estimate"))
            model = tr(title(self._measured))
            engine = f"{model}, {words.on_device(found.device)}" if found.device else model
            self._engine.setToolTip(f"{found.title}. {translated(found.reason)}")
        elif trial.stage is TrialStage.FAILED:
            self._pace.say(tr("No estimate"))
            reason = trial.sentence
        elif running:
            self._pace.say(tr("Testing …"))
            self._bar.setValue(int(1000 * trial.share))
            reason = tr("{span} so far: a few answers, and one step of learning.", span=span(trial.seconds))
        else:
            self._pace.say(tr("Not tested yet"))
        self._engine.tell(engine)
        self._reason.tell(reason)
        said = [self._pace.text(), self._engine.text(), self._reason.text()]
        self._speed.setAccessibleName(". ".join(filter(None, said)))
