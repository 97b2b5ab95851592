"""The step that shows what this computer can do, measured while its owner looks on, and offers the models."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.ui.frame.frame import Actions
from app.ui.language.spoken import spoken
from app.ui.language.texts import span, tr
from app.ui.models.picker import ModelPicker
from app.ui.theme import Theme
from app.ui.view.view import View
from app.ui.welcome.step import Act, step_layout, where
from app.ui.welcome.trial import TrialRun, TrialStage
from app.ui.widgets.option import Option, OptionGroup
from app.ui.widgets.pieces import Label, button, card, column, progress_bar, row

STARTER, LARGER = "starter", "larger"


class Machine(QWidget):
    """Measures this computer, and lets the owner choose the model."""

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
        speed = column(self._pace, self._bar, self._engine, self._reason, gap=7)
        speed.addLayout(row(self._again, 1))
        speed.addStretch(1)
        self._speed = card(speed, "quiet", 20)
        self._models = OptionGroup(tr("Model"))
        starter = Option(
            theme,
            tr("Starter (recommended)"),
            tr("Built in. Only solves puzzles. Gets visibly better within minutes, on any computer."),
        )
        self._models.add(STARTER, starter)
        larger = Option(
            theme,
            tr("A bigger model"),
            tr("Talks and knows more. Learns slower. Download one, or use one you have."),
        )
        self._models.add(LARGER, larger)
        self._picker = ModelPicker(theme, actions.models)
        self._picker.picked.connect(lambda _: self._picked())
        self._picker.hide()
        models = column(self._models, self._picker, 1, gap=12)
        self._models.chosen.connect(self._chosen)
        sides = row(self._speed, models, gap=18, fill=(0, 1))
        self._on = button(tr("Continue"), go_on, "large")
        self.where = Label(where(2, 3), "faint")
        self.setLayout(
            step_layout(
                self.where,
                tr("What this computer can do"),
                tr("A quick speed test. No need to wait."),
                sides,
                row(button(tr("Back"), back, "second"), self._on, 1, gap=10),
            )
        )
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
        """Measures, once per model."""
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
        for part in (self._engine, self._reason):
            part.hide()
        if trial.stage is TrialStage.DONE and found is not None:
            self._pace.say(found.pace[:1].upper() + found.pace[1:] or tr("No estimate"))
            self._engine.tell(found.title)
            self._reason.tell(spoken(found.reason))
        elif trial.stage is TrialStage.FAILED:
            self._pace.say(tr("No estimate"))
            self._reason.tell(trial.sentence)
        elif running:
            self._pace.say(tr("Testing …"))
            self._bar.setValue(int(1000 * trial.share))
            self._reason.tell(
                tr("{span} so far: a few answers, and one step of learning.", span=span(trial.seconds))
            )
        else:
            self._pace.say(tr("Not tested yet"))
        said = [self._pace.text(), self._engine.text(), self._reason.text()]
        self._speed.setAccessibleName(". ".join(filter(None, said)))
