"""Overview: is it learning, how well, and is everything safe. What most people look at, most of the time."""

from __future__ import annotations

import time

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QWidget

from app.ui.model import State, Step, View
from app.ui.pages import words
from app.ui.pages.frame import Actions, Page
from app.ui.texts import ago, counted, number, percent, span, tr
from app.ui.theme import Theme
from app.ui.widgets.curve import Curve
from app.ui.widgets.icons import drawn
from app.ui.widgets.pieces import Elided, Label, Notice, button, card, column, row
from app.ui.widgets.stat import Stat


class Overview(Page):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("Overview"))
        self._model = Label("", "chip")
        self.header.addWidget(self._model)
        self._notice = Notice(button(tr("Try again"), actions.start))
        self._welcome = Welcome(theme, actions)
        self._now = Now(actions)
        self._curve = Curve(theme)
        self._stats = [Stat() for _ in range(4)]
        self._stat_row = QWidget()
        self._stat_row.setLayout(row(*self._stats, gap=16))
        self._foot = Elided("", "faint")
        self.add(self._notice)
        self.add(self._welcome)
        self.add(self._now)
        self.add(self._curve, 1)
        self.add(self._stat_row)
        self.add(self._foot)
        self._curve.setMinimumHeight(288)

    def show_view(self, view: View) -> None:
        now = time.time()
        fresh = view.state is State.NEW and not view.curve
        self._notice.show_problem(view.problem)
        self._welcome.setVisible(fresh)
        for part in (self._curve, self._stat_row, self._foot):
            part.setVisible(not fresh)
        self._now.setVisible(not fresh and view.problem is None)
        self._model.setVisible(bool(view.model) and not fresh)
        self._model.say(view.model)
        if fresh:
            return
        self._now.show_view(view, now)
        self._curve.show_view(view)
        self._say_stats(view, now)
        parts = [words.device(view), tr("{name} recipe", name=view.recipe) if view.recipe else "", view.news]
        self._foot.say("  ·  ".join(filter(None, parts)))

    def _say_stats(self, view: View, now: float) -> None:
        today, swarm = view.today, view.swarm
        first, second, third, last = self._stats
        right = percent(today.solved / today.answered) if today.answered else ""
        first.say(
            tr("Solved today"),
            number(today.solved),
            tr("{share} of {n} answers", share=right, n=number(today.answered))
            if right
            else tr("no answers yet"),
        )
        if swarm is None:
            second.say(
                tr("Rounds today"),
                number(today.rounds),
                tr("about {span} each", span=span(view.round_s)) if view.round_s else tr("none yet"),
            )
            speed = number(view.tokens_per_s) if view.tokens_per_s else "–"
            third.say(
                tr("Speed"), speed, tr("tokens a second") if view.tokens_per_s else tr("known after a round")
            )
        else:
            linked = tr("connected") if swarm.connected else swarm.sentence or tr("not connected")
            second.say(tr("Peers online"), number(swarm.online), linked)
            waiting = (
                counted("{n} on its way", "{n} on their way", swarm.waiting)
                if swarm.waiting
                else tr("groups of answers")
            )
            given = tr("{given} / {taken}", given=number(swarm.given), taken=number(swarm.taken))
            third.say(tr("Given / taken"), given, waiting)
        safe = tr("Round {n}", n=number(view.safe_round)) if view.safe_round else "–"
        last.say(
            tr("Last safe point"), safe, ago(view.safe_at, now) if view.safe_at else tr("after the first round")
        )


def _lead(name: Label, rest: Elided) -> QHBoxLayout:
    """A short text, and behind it one that takes the room that is left."""
    made = row(name, rest, gap=10)
    made.setStretch(1, 1)
    return made


class Now(QFrame):
    """What happens at this moment, and the button to change it."""

    def __init__(self, actions: Actions) -> None:
        super().__init__()
        self.setProperty("look", "card")
        self._actions = actions
        self._round, self._step, self._why = Label("", "strong"), Elided("", "soft"), Elided("", "faint")
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(tr("Progress of this step"))
        self._button = button("", self._press)
        inside = row(
            column(_lead(self._round, self._step), self._bar, self._why, gap=7),
            self._button,
            gap=24,
            margins=(20, 14, 16, 14),
        )
        inside.setStretch(0, 1)
        inside.setAlignment(self._button, Qt.AlignmentFlag.AlignVCenter)
        self.setLayout(inside)
        self._running = False

    def show_view(self, view: View, now: float) -> None:
        self._running = view.state in (State.LEARNING, State.STARTING, State.WAITING)
        active = words.working(view)
        self._round.say(
            words.round_line(view) if active and view.engine and view.round else words.state_name(view.state)
        )
        self._step.say(words.step_line(view) if active else "")
        self._why.say(words.reason(view, now))
        self._bar.setVisible(active)
        if view.total:
            self._bar.setRange(0, view.total)
            self._bar.setValue(view.done)
        elif view.state is State.LEARNING and view.round_s and view.step is not Step.PROBING:
            spent = now - (
                view.step_since or now
            )  # without progress from the node: as long as the last round took
            self._bar.setRange(0, 1000)
            self._bar.setValue(int(1000 * min(0.96, spent / view.round_s)))
        else:
            self._bar.setRange(0, 1000)
            self._bar.setValue(0)
        self._button.setText(tr("Pause") if self._running else tr("Start learning"))
        look = "" if self._running else "primary"
        if self._button.property("look") != look:
            self._button.setProperty("look", look)
            self._button.style().unpolish(self._button)
            self._button.style().polish(self._button)
        self._button.setEnabled(view.state is not State.STOPPING)
        self.setAccessibleName(f"{self._round.text()}, {self._step.text()}. {self._why.text()}")

    def _press(self) -> None:
        (self._actions.pause if self._running else self._actions.start)()


class Welcome(QFrame):
    """Before anything has run: what this does, what leaves the computer, and one button."""

    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__()
        self._theme = theme
        self.setProperty("look", "card")
        self._mark = Label("")
        title = Label(tr("Raise a small model on this computer"), "hero", wrap=True)
        lead = Label(
            tr(
                "It practises puzzles, checks its own answers and learns from them. Alone, or together "
                "with other people's models."
            ),
            "lead",
            wrap=True,
        )
        others = button(tr("Learn with others"), lambda: actions.learn("others"), "large")
        alone = button(tr("Learn alone"), lambda: actions.learn("alone"), "second")
        points = row(
            self._point(
                tr("What it does"),
                tr(
                    "Uses this computer's processor in the background, at low priority. One press pauses "
                    "it and frees the memory."
                ),
            ),
            self._point(
                tr("With others"),
                tr(
                    "Answers to generated puzzles leave this computer, as text. Never your files, never "
                    "the model. No account."
                ),
            ),
            self._point(
                tr("Alone"),
                tr(
                    "Nothing leaves: no network connection is opened at all. You can change your mind at "
                    "any time."
                ),
            ),
            gap=16,
        )
        inside = column(
            row(self._mark, 1),
            title,
            lead,
            row(others, alone, 1, gap=10),
            points,
            gap=18,
            margins=(40, 40, 40, 36),
        )
        inside.insertSpacing(4, 14)
        inside.insertStretch(0, 2)
        inside.addStretch(3)
        self.setLayout(inside)
        theme.changed.connect(self._draw)
        self._draw()

    @staticmethod
    def _point(title: str, text: str) -> QFrame:
        inside = column(Label(title, "strong"), Label(text, "soft", wrap=True), gap=6)
        inside.addStretch(1)
        return card(inside, "quiet", 18)

    def _draw(self) -> None:
        self._mark.setPixmap(drawn("mark", self._theme.palette.own, 72, 60))
