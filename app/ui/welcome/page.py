"""The first minute: what this is and what leaves the computer, what the computer can do, and with whom to
learn. Three short steps, none of which asks for an account; whoever is in a hurry needs one press. An installed
app without an engine has a step more, before anything is measured."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QFrame, QLayout, QVBoxLayout, QWidget

from app.ui.engine.page import EnginePanel
from app.ui.frame.frame import Actions
from app.ui.language.spoken import spoken
from app.ui.language.texts import size, span, tr
from app.ui.models.picker import ModelPicker
from app.ui.theme import Theme
from app.ui.view.engine_pack import EnginePack
from app.ui.view.view import View
from app.ui.welcome.trial import Stage, Trial
from app.ui.widgets.icons import drawn
from app.ui.widgets.invite import InviteField
from app.ui.widgets.option import Option, Options
from app.ui.widgets.pieces import Label, button, card, column, progress_bar, row

STARTER, LARGER = "starter", "larger"
ALONE, FIND, INVITE = "alone", "find", "invite"
_LEAST_TEXT = 320
"""Narrower than this no sentence of the third step becomes, so that its height is not overrated."""
Act = Callable[[], object]


class Welcome(QFrame):
    def __init__(self, theme: Theme, actions: Actions, trial: Trial | None = None) -> None:
        super().__init__()
        self.setProperty("look", "card")
        self._actions = actions
        self._view = View()
        self._greeted = False
        self.trial = trial or Trial()
        self._then: Act = self._to_machine
        self._what = What(
            theme, lambda: self._with_engine(self._to_machine), lambda: self._with_engine(self._learn_alone)
        )
        self._engine = Engine(theme, actions, lambda: self._show(self._what))
        self._machine = Machine(theme, actions, self.trial, self._to_company, lambda: self._show(self._what))
        self._company = Company(theme, self._learn, lambda: self._show(self._machine))
        self._steps = (self._what, self._engine, self._machine, self._company)
        self.setLayout(column(*self._steps, gap=0))  # a stack would be as high as the highest of them
        for step in self._steps[1:]:
            step.hide()

    def show_view(self, view: View) -> None:
        self._view = view
        self._machine.show_view(view)
        self._what.show_pack(view.pack)
        if view.pack is not None:
            self._engine.show_pack(view.pack)
            if view.pack.usable and view.pack.doing is None and not self._engine.isHidden():
                self._then()

    def arrived(self) -> None:
        """The first time, the keyboard goes on from here; later it stays where it is."""
        if self.isVisible() and not self._greeted:
            self._greeted = True
            self._what.arrive()

    def close_down(self) -> None:
        self.trial.stop(wait=True)

    def hideEvent(self, event: QHideEvent) -> None:
        """Learning has begun: the measurement would only be in its way."""
        super().hideEvent(event)
        if self.isHidden():  # and not merely the window
            self.trial.stop()

    def _with_engine(self, then: Act) -> None:
        """Goes on with `then`: at once, or when the engine is there."""
        pack = self._view.pack
        if pack is None or pack.usable:
            then()
            return
        self._then = then
        for step, at in ((self._engine, 2), (self._machine, 3), (self._company, 4)):
            step.where.say(_where(at, 4))
        self._show(self._engine)

    def _learn_alone(self) -> None:
        self._learn(ALONE)

    def _to_machine(self) -> None:
        self._show(self._machine)
        self._machine.begin()

    def _to_company(self) -> None:
        self._show(self._company)

    def _show(self, step: QWidget) -> None:
        for one in self._steps:
            one.setVisible(one is step)
        step.arrive()  # type: ignore[attr-defined]

    def _learn(self, company: str, invite: str = "") -> None:
        self.trial.stop()
        if company == ALONE:
            self._actions.learn("alone")
        elif company == FIND:
            self._actions.learn("others")
        else:
            self._actions.join(invite)


class What(QWidget):
    """What it does, what leaves the computer, and what it asks of it."""

    def __init__(self, theme: Theme, go_on: Act, at_once: Act) -> None:
        super().__init__()
        self._theme = theme
        self._mark = Label("")
        title = Label(tr("Raise a small model on this computer"), "hero", wrap=True)
        lead = Label(
            tr(
                "It tries puzzles, checks itself and gets better. On its own, or together with other people's "
                "models."
            ),
            "lead",
            wrap=True,
        )
        self._on = button(tr("Set it up"), go_on, "large", tr("Two quick questions. No account."))
        alone = button(
            tr("Learn alone"),
            at_once,
            "second",
            tr("Starts right away with the built-in model"),
        )
        points = row(
            _point(
                tr("What it does"),
                tr(
                    "Watch it learn for ten minutes. After that it only works while you're away. Pause any "
                    "time."
                ),
            ),
            _point(
                tr("What leaves this computer"),
                tr(
                    "On its own, Shoal doesn't open a single network connection. In a swarm, only puzzle "
                    "answers are shared. Never your files, never the model, nothing you type without your yes."
                ),
            ),
            _point(
                tr("What it keeps"),
                tr(
                    "Everything is in one folder. Move or delete it any time. No account; no one knows you use "
                    "it."
                ),
            ),
            gap=16,
            fill=(0, 1, 2),
        )
        self._first = Label("", "faint", wrap=True)
        self._first.hide()
        inside = column(
            row(self._mark, 1),
            title,
            lead,
            row(self._on, alone, 1, gap=10),
            self._first,
            points,
            gap=18,
            margins=(40, 34, 40, 32),
        )
        inside.insertSpacing(5, 12)
        inside.insertStretch(0, 2)
        inside.addStretch(3)
        self.setLayout(inside)
        theme.changed.connect(self._draw)
        self._draw()

    def arrive(self) -> None:
        self._on.setFocus()

    def show_pack(self, pack: EnginePack | None) -> None:
        """What comes first where there is no engine."""
        lacking = pack is not None and not pack.usable
        self._first.setVisible(lacking)
        if pack is None or not lacking:
            return
        offer = pack.offers[0] if pack.offers else None
        if offer is not None and offer.bytes and not offer.carried:
            self._first.say(tr("First the engine is installed: {size}, once.", size=size(offer.bytes)))
        else:
            self._first.say(tr("First the engine is installed, once."))

    def _draw(self) -> None:
        self._mark.setPixmap(drawn("mark", self._theme.palette.own, 72, 60))


class Engine(QWidget):
    """Of an installed app: what it computes with is no part of it, and comes first."""

    def __init__(self, theme: Theme, actions: Actions, back: Act) -> None:
        super().__init__()
        self._panel = EnginePanel(theme, actions.engine, large=True)
        self.where = Label("", "faint")
        self.setLayout(
            _step(
                self.where,
                tr("First, the engine"),
                tr("Shoal learns with PyTorch, a large program that is installed once. Remove it any time."),
                column(self._panel),
                row(button(tr("Back"), back, "second"), *self._panel.buttons, 1, gap=10),
            )
        )

    def show_pack(self, pack: EnginePack) -> None:
        before = self._panel.shown
        self._panel.show_pack(pack)
        if self.isVisible() and self._panel.shown != before:
            self._panel.focus()  # the button that had it is gone

    def arrive(self) -> None:
        self._panel.focus()


class Machine(QWidget):
    """What this computer can do, measured while one looks; and which model it shall be."""

    def __init__(self, theme: Theme, actions: Actions, trial: Trial, go_on: Act, back: Act) -> None:
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
        self._models = Options(tr("Model"))
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
        self.where = Label(_where(2, 3), "faint")
        self.setLayout(
            _step(
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
        """Measures, once for each model."""
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
        running = trial.stage is Stage.RUNNING
        self._bar.setVisible(running)
        self._again.setVisible(trial.stage in (Stage.FAILED, Stage.DONE))
        for part in (self._engine, self._reason):
            part.hide()
        if trial.stage is Stage.DONE and found is not None:
            self._pace.say(found.pace[:1].upper() + found.pace[1:] or tr("No estimate"))
            self._engine.tell(found.title)
            self._reason.tell(spoken(found.reason))
        elif trial.stage is Stage.FAILED:
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


class Company(QWidget):
    """With whom: alone unless somebody wants otherwise."""

    def __init__(self, theme: Theme, learn: Callable[[str, str], None], back: Act) -> None:
        super().__init__()
        self._learn = learn
        self._options = Options(tr("With whom"))
        self._options.add(
            ALONE,
            Option(
                theme,
                tr("Alone"),
                tr("Nothing leaves this computer. You can change that any time."),
            ),
        )
        self._options.add(
            FIND,
            Option(
                theme,
                tr("With others on this network"),
                tr(
                    "Finds Shoals on this network, or starts a swarm you can invite people to. They swap "
                    "puzzle answers, as plain text."
                ),
            ),
        )
        invited = Option(
            theme,
            tr("With an invite"),
            tr("Joins the swarm you were invited to. Only puzzle answers are shared, as plain text."),
        )
        go = tr("Start learning")
        self._invite = InviteField(go)
        self._invite.returnPressed.connect(self._go)
        invited.inside.addSpacing(4)
        invited.inside.addWidget(self._invite)
        invited.inside.addWidget(self._invite.complaint)
        invited.inside.addWidget(self._invite.words)
        self._options.add(INVITE, invited)
        self._options.chosen.connect(self._chosen)
        self._start = button(go, self._go, "large")
        self.where = Label(_where(3, 3), "faint")
        self.setLayout(
            _step(
                self.where,
                tr("Learn alone or together?"),
                tr("You can change this any time."),
                column(self._options),
                row(button(tr("Back"), back, "second"), self._start, 1, gap=10),
            )
        )
        for option in self.findChildren(Option):
            option.text.setMinimumWidth(_LEAST_TEXT)
        self._chosen(ALONE)

    def arrive(self) -> None:
        self._start.setFocus()

    def _chosen(self, value: object) -> None:
        self._invite.setVisible(value == INVITE)
        self._invite.complaint.hide()
        self._invite.words.hide()
        if value == INVITE:
            self._invite.setFocus()

    def _go(self) -> None:
        company = str(self._options.value)
        invite = self._invite.checked() if company == INVITE else ""
        if invite is None:
            self._invite.setFocus()
        else:
            self._learn(company, invite)


def _point(title: str, text: str) -> QFrame:
    inside = column(Label(title, "strong"), Label(text, "soft", wrap=True), gap=6)
    inside.addStretch(1)
    return card(inside, "quiet", 18)


def _where(at: int, of: int) -> str:
    return tr("Step {n} of {all}", n=at, all=of)


def _step(where: Label, title: str, text: str, middle: QLayout, buttons: QLayout) -> QVBoxLayout:
    """Which step it is, its heading, what is in it, and the buttons that go on and back."""
    return column(
        where,
        Label(title, "hero", wrap=True),
        Label(text, "lead", wrap=True),
        middle,
        1,
        buttons,
        gap=12,
        margins=(40, 26, 40, 26),
    )
