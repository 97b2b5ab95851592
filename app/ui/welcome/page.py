"""The first run in three short steps: what Shoal does and what leaves the computer, which model
learns, and with whom. None of them asks for an account, and a person in a hurry needs one press. Where an
installed app has no engine yet, the overview offers it as soon as something is to be learned."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from app.ui.frame.frame import Actions
from app.ui.language.texts import tr
from app.ui.theme import Theme
from app.ui.view.view import View
from app.ui.welcome.model import STEP_SIDE, Act, ModelStep, point, step_layout, step_text
from app.ui.widgets.bend import Bend
from app.ui.widgets.invite import InviteField
from app.ui.widgets.pieces import Card, Label, Picture, button, column, row
from app.ui.widgets.selecting import Option, OptionGroup

ALONE, FIND, INVITE = "alone", "find", "invite"
_MIN_TEXT = 290
"""Minimum width in pixels of a sentence in the third step, so that its height is not overestimated."""


class WelcomePanel(Card):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__()
        self._actions = actions
        self._greeted = False
        self._what = IntroStep(
            theme,
            lambda: self._show(self._model),
            lambda: self._learn(ALONE),
            lambda: actions.go("skills"),
        )
        self._model = ModelStep(
            theme, actions, lambda: self._show(self._company), lambda: self._show(self._what)
        )
        self._company = CompanyStep(theme, actions, self._learn, lambda: self._show(self._model))
        self._steps = (self._what, self._model, self._company)
        self.setLayout(column(*self._steps, gap=0))  # a stack would be as high as the highest of them
        for step in self._steps[1:]:
            step.hide()

    def show_view(self, view: View) -> None:
        self._model.show_view(view)

    def enter(self) -> None:
        """Gives the keyboard focus to this step the first time; later the focus stays where it is."""
        if self.isVisible() and not self._greeted:
            self._greeted = True
            self._what.arrive()

    def _show(self, step: QWidget) -> None:
        for one in self._steps:
            one.setVisible(one is step)
        step.arrive()  # type: ignore[attr-defined]

    def _learn(self, company: str) -> None:
        if company != INVITE:
            self._actions.node.learn("alone" if company == ALONE else "others")


class IntroStep(QWidget):
    """The first step: what Shoal does, what leaves the computer, and what it needs."""

    def __init__(self, theme: Theme, go_on: Act, at_once: Act, own: Act) -> None:
        super().__init__()
        title = Label(tr("Raise a small model on this computer"), "hero", wrap=True)
        tries = tr(
            "It learns what you show it: your own table of texts and answers, or puzzles. On its own, or "
            "together with other people's models."
        )
        lead = Label(tries, "lead", wrap=True)
        self._on = button(tr("Set it up"), go_on, "large", tr("Two quick questions. No account."))
        hint = tr("Starts right away with the built-in model")
        alone = button(tr("Learn alone"), at_once, "second", hint)
        learns = tr("Learn a table of yours: texts and the right answers. Then ask it")
        table = button(tr("I have my own table"), own, "second", learns)
        does = tr("Watch it learn for ten minutes. After that it only works while you're away. Pause any time.")
        leaves = tr(
            "On its own, Shoal doesn't open a single network connection. In a swarm, only puzzle "
            "answers are shared. Never your files, never the model, nothing you type without your yes."
        )
        keeps = tr(
            "Everything is in one folder. Move or delete it any time. No account; no one knows you use it."
        )
        points = (
            point(tr("What it does"), does),
            point(tr("What leaves this computer"), leaves),
            point(tr("What it keeps"), keeps),
        )
        shown = Bend(*points, gap=16, least=520)
        for at in range(3):
            shown.setStretch(at, 1)
        inside = column(
            row(Picture(theme, "mark", "own", 72, 60), 1),
            Label(step_text(1, 3), "faint"),
            title,
            lead,
            Bend(self._on, alone, table, 1, gap=10),
            shown,
            gap=18,
            margins=(STEP_SIDE, 34, STEP_SIDE, 32),
        )
        inside.insertSpacing(6, 12)
        inside.insertStretch(0, 2)
        inside.addStretch(3)
        self.setLayout(inside)

    def arrive(self) -> None:
        self._on.setFocus()


class CompanyStep(QWidget):
    """The third step: learn alone or together; alone unless the owner chooses otherwise."""

    def __init__(self, theme: Theme, actions: Actions, learn: Callable[[str], None], back: Act) -> None:
        super().__init__()
        self._actions, self._learn = actions, learn
        self._options = OptionGroup(tr("With whom"))
        alone = tr("Nothing leaves this computer.")
        find = tr(
            "Finds Shoals on this network. If there are none, it opens a port and starts a swarm. They "
            "swap puzzle answers, as plain text."
        )
        self._options.add(ALONE, Option(theme, tr("Alone"), alone))
        self._options.add(FIND, Option(theme, tr("With others on this network"), find))
        invited = Option(
            theme,
            tr("With an invite or six words"),
            tr("Joins the swarm you were invited to. Only puzzle answers are shared, as plain text."),
        )
        go = tr("Start learning")
        self._invite = InviteField(go)
        self._invite.returnPressed.connect(self._go)
        invited.inside.addSpacing(4)
        for part in (self._invite, self._invite.complaint, self._invite.words):
            invited.inside.addWidget(part)
        self._options.add(INVITE, invited)
        self._options.chosen.connect(self._chosen)
        self._start = button(go, self._go, "large")
        title, about = tr("Learn alone or together?"), tr("You can change this any time.")
        buttons = row(button(tr("Back"), back, "second"), self._start, 1, gap=10)
        self.setLayout(step_layout(step_text(3, 3), title, about, column(self._options), buttons))
        for option in self.findChildren(Option):
            option.text.setMinimumWidth(_MIN_TEXT)
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
        company, node = str(self._options.value), self._actions.node
        if company != INVITE or self._invite.join_entered(node.join, node.join_private):
            self._learn(company)
