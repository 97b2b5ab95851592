"""The page Overview: whether the model is learning, how well, and whether everything is saved."""

from __future__ import annotations

import time

from PySide6.QtGui import QResizeEvent

from app.ui.charts.curve import Curve
from app.ui.frame.frame import Actions, Page
from app.ui.install.engine import EngineCard, NewerEngine
from app.ui.install.section import UpdateLine
from app.ui.language.spoken import spoken
from app.ui.language.texts import ago, counted, number, percent, span, tr
from app.ui.overview.fish import Pond
from app.ui.overview.note import NextCard, NoteLine
from app.ui.overview.now import Now
from app.ui.theme import Theme
from app.ui.view import words
from app.ui.view.view import NodeStatus, View
from app.ui.welcome.page import WelcomePanel
from app.ui.widgets.bend import Stat, stats_row
from app.ui.widgets.pieces import Elided, Label, Notice, boxed, button, row

SETTLED_S = 2 * 3600.0
"""Seconds after the very first start during which only necessary questions are asked."""
_POND_FROM = 880
"""Minimum width of the page in pixels that shows the fish; on a narrower page it would push the figures
aside."""
_AROUND = 110
"""Pixels of margins and gaps in the title's line."""
_HIGH = 780
"""Minimum height of the page in pixels that shows the day's figures below "what next"."""
_LONGEST = 40
"""Maximum characters of a model's name beside the title."""


class Overview(Page):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("Overview"))
        self._view, self._fresh = View(), True
        self._note, self._device = NoteLine(theme, actions), Label("", "faint")
        self._model = Label("", "chip")
        for part in (self._note, self._device, self._model):
            self.header.addWidget(part)
        self._notice = Notice(button(tr("Try again"), actions.start))
        self._update = UpdateLine(actions.updates, lambda: actions.go("settings"))
        self._welcome = WelcomePanel(theme, actions)
        self._engine = EngineCard(theme, actions.engine)
        self._newer = NewerEngine(actions.engine)
        self._now = Now(theme, actions)
        self._next = NextCard(theme, actions)
        self._curve = Curve(theme, actions.models.result)
        self._pond = Pond(theme, actions.choices, lambda: actions.go("skills"))
        self._curve.put_beside(self._pond)
        self._stats = [Stat() for _ in range(4)]
        self._stat_row = boxed(stats_row(*self._stats))
        self._foot, self._power = (
            Elided("", "faint"),
            Label("", "faint"),
        )  # wrapped, it would push the figures down
        asks = (self._notice, self._update, self._newer, self._welcome, self._engine, self._now, self._next)
        for one in asks:
            self.add(one)
        self.add(self._curve, 1)
        self.add(self._stat_row)
        self.add(boxed(row(self._foot, self._power, gap=16, fill=0)))

    def show_view(self, view: View) -> None:
        self._view = view
        now = time.time()
        fresh = self._fresh = view.state is NodeStatus.NEW and not view.curve
        lacking = not fresh and view.pack is not None and not view.pack.usable
        self._notice.show_problem(None if lacking else view.problem)
        self._show_engine(view, lacking)
        self._update.show_update(view.update_view, question=_settled(view, now))
        self._welcome.show_view(view)
        self._welcome.setVisible(fresh)
        for part in (self.title, self._curve, self._stat_row):
            part.setVisible(not fresh)
        self._foot.setVisible(not fresh and bool(view.news))
        self._now.setVisible(not fresh and not lacking and view.problem is None)
        name = tr(words.model_name(view))
        self._model.setVisible(bool(name) and not fresh)
        self._device.setVisible(not fresh)
        self._model.say(name if len(name) <= _LONGEST else name[: _LONGEST - 2] + " …")
        self._model.setToolTip(view.model)
        self._power.tell("" if fresh else words.energy(view))
        if fresh:
            self._note.hide()
            self._next.hide()
            return
        self._next.show_view(view)
        self._note.show_view(view, now, quiet=not self._next.isHidden())
        self._pond.show_view(view)
        self._now.show_view(view, now)
        self._curve.show_view(view)
        self._say_stats(view, now)
        self._foot.say(spoken(view.news, most=2))
        self._device.say(words.device(view))
        self._device.setToolTip(words.why_device(view))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Shows optional parts only if they fit: the fish, the note, and the day's figures beside a
        question."""
        self._pond.setVisible(bool(self.ask.choices["fish"]) and self.width() >= _POND_FROM)
        if self._fresh:
            return
        said = (self.title, self._device, self._model)
        self._note.fit(self.width() - _AROUND - sum(one.sizeHint().width() for one in said))
        self._stat_row.setVisible(self._next.isHidden() or self.height() >= _HIGH)

    def _show_engine(self, view: View, lacking: bool) -> None:
        """Shows, in an installed app, what prevents learning, or the engine of a newer Shoal."""
        pack = view.pack
        self._engine.setVisible(lacking)
        if lacking:
            self._engine.show_view(view)
        newer = pack.newer if pack is not None and pack.usable else None
        hidden = newer is not None and newer.version == self.ask.choices.memory.engine_not_now
        self._newer.setVisible(newer is not None and not hidden)
        if pack is not None and newer is not None:
            self._newer.show_pack(pack)

    def enter(self) -> None:
        self._welcome.enter()

    def close_down(self) -> None:
        self._welcome.close_down()

    def _say_stats(self, view: View, now: float) -> None:
        today, swarm = view.today, view.swarm
        first, second, third, last = self._stats
        right = percent(today.solved / today.answered) if today.answered else ""
        first.say(
            tr("Solved today"),
            number(today.solved),
            tr("{share} of {n}", share=right, n=number(today.answered)) if right else tr("no answers yet"),
        )
        if swarm is None:
            second.say(
                tr("Rounds today"),
                number(today.rounds),
                tr("about {span} each", span=span(view.round_s)) if view.round_s else tr("not yet"),
            )
            began = tr("since {day}", day=words.day(view.runs[0].started)) if view.runs else tr("not yet")
            third.say(tr("Rounds in all"), number(view.safe_round), began)
        else:
            linked = tr("connected") if swarm.connected else tr("not connected")
            second.say(tr("Peers online"), number(swarm.online), linked)
            waiting = (
                counted("{n} on its way", "{n} on their way", swarm.waiting)
                if swarm.waiting
                else tr("puzzles with their answers")
            )
            known = swarm.given_ever or swarm.relay
            shared = number(swarm.given_ever) if known else "–"
            given = tr("{given} / {taken}", given=shared, taken=number(view.taken))
            third.say(tr("Shared / learned from"), given, waiting)
        safe = tr("Round {n}", n=number(view.safe_round)) if view.safe_round else "–"
        last.say(
            tr("Last saved"), safe, ago(view.safe_at, now) if view.safe_at else tr("after the first round")
        )


def _settled(view: View, now: float) -> bool:
    """Whether the person may be asked about new versions: only if the answer matters, and not shortly after the
    first start."""
    return not view.solo and bool(view.runs) and now - view.runs[0].started > SETTLED_S
