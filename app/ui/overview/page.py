"""The page Overview: whether the model is learning, how well, and whether everything is saved."""

from __future__ import annotations

import contextlib
import time

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QMenu, QWidget

from app.node.record.reasons import Dial
from app.node.rules.causes import ALWAYS_BLOCKING
from app.node.rules.preferences import RULE_OF
from app.ui.charts.curve import Curve
from app.ui.frame.frame import Actions, Page, add_pause_lengths
from app.ui.install.engine import EngineCard
from app.ui.install.updates import UpdateLine
from app.ui.language.texts import ago, counted, number, percent, span, tr, translated
from app.ui.overview.fish import Fish
from app.ui.theme import Theme
from app.ui.view import words
from app.ui.view.view import NodeStatus, Step, View
from app.ui.welcome.page import WelcomePanel
from app.ui.widgets.bend import Bend, Stat, stats_row
from app.ui.widgets.pieces import (
    Card,
    Elided,
    IconButton,
    Label,
    Notice,
    boxed,
    button,
    column,
    progress_bar,
    relook,
    row,
    rule,
)
from app.ui.widgets.selecting import Segments, Switch

_WHEN_IDLE = "contribute_when_idle"
_ELIDED, _WHOLE = 24, 520
"""Minimum pixels of a line that may be cut, and of one that may not."""
_BENT = 560
"""Width in pixels below which the buttons stand below the lines, and a long line takes two."""
SPARED = {cause.reason for cause in ALWAYS_BLOCKING}
"""Reasons to wait that apply even if the person insists."""


class Now(Card):
    """The card at the top of the overview: what the node does, why, and all controls that change it."""

    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__()
        self._actions, node = actions, actions.node
        self._round, self._step, self._why = Label("", "strong"), Elided("", "soft"), Elided("", "soft")
        self._bar = progress_bar(tr("Progress of this step"))
        room = self._bar.sizePolicy()
        room.setRetainSizeWhenHidden(True)
        self._bar.setSizePolicy(room)
        self._start = button(tr("Start learning"), node.start, "primary")
        hint = tr("For ten minutes at least")
        self._anyway = button(tr("Learn now anyway"), node.insist, "primary", hint)
        self._rule_button = button(tr("Change this rule"), self._show_rule, "flat")
        self._rule = ""
        self._pause = button(tr("Pause"), node.pause, "", tr("Frees the memory until you resume (Ctrl+P)"))
        self._longer = IconButton(theme, "chevron", tr("Pause for a while, or after this round"), look="")
        menu = QMenu(self._longer)
        add_pause_lengths(menu, node.snooze)
        menu.addSeparator()
        self._finish = menu.addAction(tr("Finish this round, then stop"))
        self._finish.triggered.connect(lambda _=False: node.finish())
        self._longer.setMenu(menu)
        self._longer.setPopupMode(IconButton.ToolButtonPopupMode.InstantPopup)
        later, kept = (
            tr("Learns now and tries other kinds between rounds"),
            tr("Stops learning. What it found is kept"),
        )
        self._skip = button(tr("Start without it"), node.skip, "", later)
        self._cancel = button(tr("Cancel"), lambda: node.contribute(False), "", kept)
        self._held = Elided("", "strong")
        lead = row(self._round, self._step, self._held, gap=10, fill=(1, 2))
        why = row(self._why, self._rule_button, gap=6, fill=0)
        does = row(self._anyway, self._skip, self._cancel, row(self._pause, self._longer, gap=2), self._start)
        top = Bend(column(lead, self._bar, why, gap=7), does, gap=24, least=_BENT)
        top.setStretch(0, 1)
        top.setAlignment(does, Qt.AlignmentFlag.AlignVCenter)
        self._contribute = Switch(theme, tr("Learn while I'm away"))
        self._contribute.toggled.connect(node.contribute)
        self._also = Switch(theme, tr("Also while I use this computer"))
        self._also.toggled.connect(lambda on: self._put(_WHEN_IDLE, not on))
        efforts = ((Dial.QUIET, tr("Quiet")), (Dial.BALANCED, tr("Balanced")), (Dial.FULL, tr("Full")))
        self._dial = Segments([(dial.value, name) for dial, name in efforts], tr("Effort"))
        self._dial.chosen.connect(lambda value: self._put("dial", value))
        named = [row(*self._named(switch), gap=6) for switch in (self._contribute, self._also)]
        switches = Bend(named[0], 1, named[1], 1, self._dial, gap=6)
        self.setLayout(column(top, rule(), switches, gap=11, margins=(20, 14, 16, 10)))

    def show_view(self, view: View, now: float) -> None:
        active = words.working(view) and not words.is_held_back(view)
        known = active and view.state is NodeStatus.LEARNING and view.engine and view.round
        fresh = view.state is NodeStatus.NEW
        lead = words.reason(view, now) if fresh else words.state_name(view.state)
        self._round.say(words.round_line(view) if known else lead)
        away = view.state is NodeStatus.PAUSED and bool(words.waits_for_absence(view))
        rests = words.reason(view, now) if away else ""
        self._step.say(words.step_line(view) if active else rests)
        held = words.is_held_back(view)
        self._held.say(words.reason(view, now) if held else "")
        for part in (self._round, self._step, self._held):
            part.setVisible(held is (part is self._held))
        self._why.say("" if fresh else self._reason(view, now))
        self._keep_whole()
        idle = view.ruling is not None and view.ruling.idle_need_s is not None
        self._bar.setVisible(active or idle)
        self._show_progress(view, now)
        wanted = words.contributes(view)
        placing = _first_look(view)
        self._skip.setVisible(wanted and placing)
        self._cancel.setVisible(wanted and placing)
        self._pause.setVisible(wanted)
        self._longer.setVisible(wanted and not placing)
        self._start.setVisible(not wanted)
        waits = held and view.state is NodeStatus.WAITING
        reason = words.known_reason(view.ruling) if waits and view.ruling is not None else None
        self._rule = RULE_OF.get(reason, "") if reason is not None else ""
        self._rule_button.setVisible(bool(self._rule))
        self._anyway.setVisible((waits and reason not in SPARED) or away)
        relook(self._start, "" if away else "primary")
        self._start.setText(tr("Resume") if words.is_held_back(view) else tr("Start learning"))
        self._start.setEnabled(view.state is not NodeStatus.STOPPING)
        self._finish.setEnabled(view.state is NodeStatus.LEARNING and not words.finishing(view))
        self._contribute.show_on(view.willing)
        self._contribute.setEnabled(view.state is not NodeStatus.STOPPING)
        self._also.show_on(not view.rules.get(_WHEN_IDLE, True))
        self._also.setEnabled(view.willing)
        if view.rules:
            self._dial.choose(view.rules["dial"])
        said = [self._held.text()] if held else [self._round.text(), self._step.text()]
        lead = ", ".join(part for part in said if part).removesuffix(".")
        self.setAccessibleName(f"{lead}. {self._why.text()}".strip())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._keep_whole()

    def _keep_whole(self) -> None:
        """Shows a reason to wait whole: in two lines if the buttons stand below it, else they go there."""
        narrow = self.width() < _BENT
        for part in (self._held, self._why):
            part.setWordWrap(narrow)
            whole = self._held.text() and not narrow
            part.setMinimumWidth(min(_WHOLE, part.sizeHint().width()) if whole else _ELIDED)

    @staticmethod
    def _reason(view: View, now: float) -> str:
        sentence = words.reason(view, now)
        if _first_look(view):
            return tr("Once per model. It learns as soon as some puzzles suit it.")
        if view.state is NodeStatus.STARTING and view.step is not None:
            return "" if view.curve else tr("The first start with a model can take a minute.")
        held, paused = words.is_held_back(view), view.state is NodeStatus.PAUSED
        if paused and (span := words.waits_for_absence(view)):
            then = tr("It learns once you've been away for {span}.", span=span)
            return f"{then} {tr('Everything it learned is safe.')}"
        if held:
            kept = tr("The memory is free again. Everything it learned is safe.")
            return kept if paused else tr("It resumes by itself.")
        return sentence

    def _show_progress(self, view: View, now: float) -> None:
        ruling = view.ruling
        if ruling is not None and ruling.idle_need_s and ruling.idle_s is not None:
            self._bar.setRange(0, int(ruling.idle_need_s))
            self._bar.setValue(int(ruling.idle_s))
        elif view.total:
            self._bar.setRange(0, view.total)
            self._bar.setValue(view.done)
        elif (
            view.state is NodeStatus.LEARNING
            and view.round_s
            and view.step not in (Step.PROBING, Step.PLACING, Step.LOADING)
        ):
            spent = now - (view.step_since or now)  # without progress: as long as the last round took
            self._bar.setRange(0, 1000)
            self._bar.setValue(int(1000 * min(0.96, max(0.0, spent) / view.round_s)))
        else:
            self._bar.setRange(0, 1000)
            self._bar.setValue(0)

    def _show_rule(self) -> None:
        if self._rule:
            self._actions.show_rule(self._rule)

    def _put(self, key: str, value: object) -> None:
        with contextlib.suppress(OSError):  # what was not kept goes back with the next view
            self._actions.node.set_rule(key, value)

    @staticmethod
    def _named(switch: Switch) -> tuple[QWidget, QLabel]:
        """Returns a switch with a label that can be clicked too."""
        label = Label(switch.accessibleName(), "soft")
        label.setBuddy(switch)
        label.mousePressEvent = lambda _: switch.click()  # type: ignore[method-assign]
        return switch, label


def _first_look(view: View) -> bool:
    """Whether the placement before the first round is running, not a later one of harder families."""
    looks = view.step in (Step.PLACING, Step.GATHERING)
    return looks and view.state is NodeStatus.LEARNING and not view.safe_round


SETTLED_S = 2 * 3600.0
"""Seconds after the very first start during which only necessary questions are asked."""
_FISH_FROM = 880
"""Minimum width of the page in pixels that shows the fish; on a narrower page it would push the figures
aside."""
_LONGEST = 40
"""Maximum characters of a model's name beside the title."""


class Overview(Page):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("Overview"))
        self._view, self._fresh = View(), True
        self._device, self._model = Label("", "faint"), Label("", "chip")
        for part in (self._device, self._model):
            self.header.addWidget(part)
        self._notice = Notice(button(tr("Try again"), actions.node.start))
        self._update = UpdateLine(actions.updates, lambda: actions.go("settings"))
        self._welcome = WelcomePanel(theme, actions)
        self._engine = EngineCard(theme, actions)
        self._now = Now(theme, actions)
        self._curve = Curve(theme, actions.models.result)
        self._fish = Fish(theme)
        self._fish.clicked.connect(lambda: actions.go("skills"))
        self._curve.put_beside(self._fish)
        self._stats = [Stat() for _ in range(4)]
        self._stat_row = boxed(stats_row(*self._stats))
        self._foot, self._power = (
            Elided("", "faint"),
            Label("", "faint"),
        )  # wrapped, it would push the figures down
        asks = (self._notice, self._update, self._welcome, self._engine, self._now)
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
        brought = words.learned_sentence(view.today.learned)
        self._foot.setVisible(not fresh and bool(brought or view.news))
        self._now.setVisible(not fresh and not lacking and view.problem is None)
        name = tr(words.model_name(view))
        self._model.setVisible(bool(name) and not fresh)
        self._device.setVisible(not fresh)
        self._model.say(name if len(name) <= _LONGEST else name[: _LONGEST - 2] + " …")
        self._model.setToolTip(view.model)
        self._power.tell("" if fresh else words.power(view))
        if fresh:
            return
        self._fish.show_view(view)
        self._now.show_view(view, now)
        self._curve.show_view(view)
        self._say_stats(view, now)
        self._foot.say(f"{brought} {translated(view.news, most=1 if brought else 2)}".strip())
        self._device.say(words.device(view))
        self._device.setToolTip(words.why_device(view))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fish.setVisible(self.width() >= _FISH_FROM)

    def _show_engine(self, view: View, lacking: bool) -> None:
        """Shows, in an installed app, what prevents learning, or the engine of a newer Shoal."""
        newer = view.pack.newer if view.pack is not None and view.pack.usable else None
        hidden = newer is None or newer.version == self.ask.choices.memory.engine_not_now
        self._engine.setVisible(lacking or not hidden)
        if view.pack is not None and not self._engine.isHidden():
            self._engine.show_pack(view.pack)

    def enter(self) -> None:
        self._welcome.enter()

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
            learned = sum(bool(family.learned_from) for family in view.families)
            if swarm.waiting:
                about = counted("{n} on its way", "{n} on their way", swarm.waiting)
            elif learned:
                about = counted("{n} new kind learned", "{n} new kinds learned", learned)
            else:
                about = tr("puzzles with their answers")
            known = swarm.given_ever or swarm.relay
            shared = number(swarm.given_ever) if known else "–"
            given = tr("{given} / {taken}", given=shared, taken=number(view.taken))
            third.say(tr("Shared / learned from"), given, about)
        safe = tr("Round {n}", n=number(view.safe_round)) if view.safe_round else "–"
        last.say(
            tr("Last saved"), safe, ago(view.safe_at, now) if view.safe_at else tr("after the first round")
        )


def _settled(view: View, now: float) -> bool:
    """Whether the person may be asked about new versions: only if the answer matters, and not shortly after the
    first start."""
    return not view.solo and bool(view.runs) and now - view.runs[0].started > SETTLED_S
