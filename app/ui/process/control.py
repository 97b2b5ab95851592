"""Between the node and the pages: reads the node's lines, produces one View per tick, and carries out what
buttons request.

The node itself decides whether it learns (app.node.rules.rules): its process keeps running while it waits or is
paused, and only its trainer ends. This side starts the process, passes on commands, and ends it with the
window."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from app.common.process.surroundings import FROM_STDIN
from app.models.catalogue import STARTER
from app.node.data import question_sets
from app.node.history import history
from app.node.record.reasons import Reason
from app.node.record.records import Round
from app.node.record.snapshot import SwarmView
from app.node.rules.preferences import Preferences, check
from app.sapo.sets.question_set import OWNERS_PREFIX
from app.swarm.client.places import forget_classes
from app.ui.language.texts import tr
from app.ui.process.node import NodeProcess
from app.ui.process.past import HistoryReader
from app.ui.view.reducer import Fold, FoldError
from app.ui.view.settings import Choices, PrivateWords
from app.ui.view.view import NodeStatus, Problem, View, with_model_state

TICK_MS = 200
"""Minimum milliseconds between two Views."""
MINUTE_MS = 60_000
INSIST_S = 600.0
"""Seconds for which `insist` and the very first start override the rules, so that a person can see it learn
without leaving the computer or closing other apps."""
AWAITED_MINUTES = 40
"""Maximum minutes for which that is repeated until a model has a point above zero. On two busy cores a real
model's first point takes seven to eleven."""
_ORDERS = {
    one.value for one in (Reason.PAUSED, Reason.SNOOZED, Reason.SERVING, Reason.CLASS, Reason.OUTSIDE_HOURS)
}


class Control(QObject):
    """Controls the node. `view` is current; `changed` is emitted at most once a tick. Commands never block."""

    changed = Signal(object)
    failed = Signal(object)

    def __init__(
        self,
        home: Path,
        choices: Choices,
        link: NodeProcess,
        clock: Callable[[], float] = time.time,
        obstacle: Callable[[], Problem | None] = lambda: None,
    ) -> None:
        """`obstacle` is called before a node is started and returns why it could not learn, if so."""
        super().__init__()
        self._home, self._choices, self._link, self._clock = home, choices, link, clock
        self._obstacle, self._words = obstacle, PrivateWords(home)
        question_sets.register_sets(home)
        memory = choices.memory
        state = NodeStatus.PAUSED if memory.asked else NodeStatus.NEW
        waits = tr("Shoal waits until you start it.") if memory.asked else ""
        self._fold = Fold(
            View(
                home=str(home),
                skill=self._skill,
                state=state,
                reason=waits,
                model=(str(choices["model"]) or STARTER) if memory.asked else "",
                willing=memory.asked and memory.willing,
                solo=choices["company"] == "alone",
                rules=Preferences(home).values,
                words=self._words.text,
            )
        )
        self._tick = QTimer(self, singleShot=True, interval=TICK_MS)
        self._tick.timeout.connect(self._tell)
        self._minute = QTimer(self, interval=MINUTE_MS)
        self._minute.timeout.connect(self._new_minute)
        self._minute.start()
        self._invite = ""
        self._awaited = 0  # minutes for which insisting may still be repeated
        self._resting = self._gives_way = False
        self._past = HistoryReader(home)
        self._past.read.connect(self._recalled)
        self._past.other.connect(lambda sentence: self._change(news=sentence))
        link.line.connect(self._line)
        link.started.connect(self._starting)
        link.stopped.connect(self._stopped)
        link.again.connect(self._again)
        link.failed.connect(self._failed)

    @property
    def view(self) -> View:
        return self._fold.view

    def open(self, learn: bool = True) -> None:
        """Reads the history, and starts the node if the person wants that; an earlier pause stays in force."""
        self._recall()
        if learn and self._choices.memory.asked and self._choices["learn_at_start"]:
            self._launch()

    def learn(self, company: str) -> None:
        """Learns "alone" or with "others" from now on, and after every later start. This and joining a swarm
        start a node, but end no pause."""
        self._go("", company)

    def join(self, invite: str) -> None:
        """Learns with others, by this invite or address; without one, in a swarm that the node finds or hosts.
        The node remembers its relay, so the invite is not stored here. Ends membership in a private swarm."""
        self._words.put("")
        self._change(words="")
        self._go(invite, "others")

    def join_private(self, words: str) -> None:
        """Learns only in the private swarm of these six words, creating it if needed. Raises OSError if the
        words cannot be stored."""
        self._words.put(words)
        self._change(words=words)
        self._go("", "others")

    def leave(self) -> None:
        """Closes every connection, also for later starts. Learning continues alone; a pause stays in force."""
        with contextlib.suppress(OSError):
            self.keep_company("alone")

    def keep_company(self, company: str) -> None:
        """Sets "alone" or "others", now if a node runs, else for its next start. Raises OSError."""
        self._choices.put("company", company)
        self._invite = ""
        if company == "alone":
            with contextlib.suppress(OSError):
                forget_classes(self._home)
        if self._link.wanted:
            self._launch()
        else:
            self._change(solo=company == "alone", swarm=None)

    def rejoin(self) -> None:
        """Tries the relay of a lesson that had ended."""
        self._link.renew()

    def contribute(self, on: bool) -> None:
        """Turns learning while nobody uses the computer on or off. On ends every pause; off also pauses."""
        if on:
            self.start()
        else:
            self._remember(willing=False)
            self._change(willing=False)
            self.pause()

    def start(self) -> None:
        """Ends every pause: learns from now on whenever the rules allow."""
        self._be_willing()
        self._launch()
        self._link.tell(command="resume")

    def insist(self) -> None:
        """Learns for INSIST_S even if other programs are busy, and again until the curve has a point above
        zero, for AWAITED_MINUTES at most."""
        self._be_willing()
        self._launch()
        self._insist()

    def pause(self) -> None:
        """Pauses until `start`. The trainer ends, which frees its memory."""
        self._awaited = 0
        self._order(command="pause")
        if self._link.running and self.view.ruling is None:  # it still starts, and will say so only then
            self._change(state=NodeStatus.STOPPING)

    def snooze(self, seconds: float | None) -> None:
        """Pauses for this many seconds, or until tomorrow."""
        self._awaited = 0
        self._order(command="snooze", **({"tomorrow": True} if seconds is None else {"seconds": seconds}))

    def finish(self) -> None:
        """Pauses after the current round."""
        self._awaited = 0
        self._order(command="finish")

    def skip(self) -> None:
        """Skips the rest of the placement and starts learning."""
        self._link.tell(command="skip")

    def set_rule(self, key: str, value: object) -> None:
        """Changes a setting of app.node.rules.preferences. Raises PreferenceError, and OSError if it cannot be
        saved."""
        check(key, value)
        if self._link.running:
            self._link.tell(command="settings", changed={key: value})
        else:
            Preferences(self._home).change({key: value})
        self._change(rules={**self.view.rules, key: value})

    def set_view_field(self, part: str, value: object) -> None:
        """Sets the View's field `part` to a value that another control found out."""
        self._change(**{part: value})

    def learn_questions(self, marks: tuple[str, ...]) -> None:
        """Learns these question sets, in turns, now if a node runs; without sets, puzzles again. The same sets
        again: their rows have changed."""
        before, same = self._skill, marks == tuple(self._choices.memory.questions)
        self._remember(questions=marks, waits=())
        if self._skill != before:
            self._fold = Fold(
                with_model_state(self.view, state=self.view.state, model=self.view.model, skill=self._skill)
            )
            self._recall()
            self._soon()
        if self._link.wanted and same:
            self._link.renew()
        elif self._link.wanted:
            self._launch()

    def suspend_node(self) -> None:
        """Ends the node until `resume_node`, without recording a pause."""
        self._resting = self._link.wanted
        self._link.stop()

    def resume_node(self) -> None:
        if self._resting:
            self._resting = False
            self._launch()

    def engine_changed(self) -> None:
        """Call this when another engine is in use. Restarts a running node, and starts one that was suspended
        or has failed."""
        if self._link.wanted:
            self._link.renew()
        elif self._resting:
            self.resume_node()
        elif self.view.state is NodeStatus.FAILED and self._choices.memory.asked:
            self._launch()

    def on_model_changed(self) -> None:
        """Call this when another model was chosen, or its training was changed while no node ran. Reads and
        shows the chosen model's history, and restarts a running node. Late reports of the old node are not
        shown."""
        view = self.view
        state = NodeStatus.PAUSED if view.state is NodeStatus.FAILED else view.state
        waits = tr("Shoal waits until you start it.") if state is NodeStatus.PAUSED else view.reason
        model = str(self._choices["model"]) or STARTER
        self._fold = Fold(with_model_state(view, state=state, reason=waits, model=model))
        self._recall()
        if self._link.running:
            self._launch()
            self._gives_way = self._link.closing
            if not _held(view):
                self._insist()
        self._soon()

    def close(self) -> None:
        """Ends the node and returns when it has ended. Learning resumes at the next start. No signals are
        emitted after this: the window may be gone."""
        self._link.stop_and_wait()
        self.blockSignals(True)
        self._tick.stop()
        self._minute.stop()
        self._past.close()

    def _go(self, invite: str, company: str) -> None:
        with contextlib.suppress(OSError):
            self._choices.put("company", company)
        self._invite = invite
        first = not self._choices.memory.asked
        if _ordered(self.view) and not first:
            self._launch()
            return
        self.start()
        if first:
            self._insist()

    def _insist(self) -> None:
        self._awaited = AWAITED_MINUTES
        self._link.tell(command="insist", seconds=INSIST_S)

    def _be_willing(self) -> None:
        self._remember(asked=True, willing=True)
        self._change(willing=True)

    def _launch(self) -> None:
        """Makes sure that a node runs with the current options."""
        alone, options = self._choices["company"] == "alone", self._options()
        secret = "" if alone else self._invite or self._words.text
        if self._link.runs_with(options, secret):
            return
        if (problem := self._obstacle()) is not None:
            self._failed(problem)
            return
        if not self._link.differs_only_in_swarm(options):  # which goes on for a while
            self._change(state=NodeStatus.STARTING, reason="", until=None, ruling=None, problem=None)
        self._change(solo=alone, swarm=None if alone else SwarmView())
        self._link.start(options, secret)

    def _order(self, **command: object) -> None:
        """Passes a command to a running node; without one, cancels a pending restart."""
        if self._link.running:
            self._link.tell(**command)
        else:
            self._link.stop()

    def _options(self) -> list[str]:
        where = ["--relay", FROM_STDIN] if self._invite else ["--private"] if self._words.text else []
        engine, model = str(self._choices["engine"]), str(self._choices["model"]) or STARTER
        return [
            *(["--solo"] if self._choices["company"] == "alone" else where),
            *("--recipe", str(self._choices["recipe"])),
            *("--probe-every", str(self._choices["probe_every"])),
            *(["--engine", engine] if engine != "auto" else []),
            *(["--model", model] if model != STARTER else []),
            *self._questions(),
        ]

    def _questions(self) -> list[str]:
        """Returns the question sets that are switched on and still exist."""
        return [word for mark in self._marks for word in ("--questions", mark)]

    @property
    def _marks(self) -> list[str]:
        folder = self._home / question_sets.FOLDER
        return [mark for mark in self._choices.memory.questions if (folder / f"{mark}.json").is_file()]

    @property
    def _skill(self) -> str:
        """The family of the question set that is learned first; empty for puzzles."""
        return f"{OWNERS_PREFIX}{self._marks[0]}" if self._marks else ""

    def _line(self, line: bytes) -> None:
        if self._gives_way:
            return
        now = self._clock()
        try:
            name = self._fold.line(line, now)
        except FoldError:
            return  # one bad line is not worth the whole picture; a dead node says so by ending
        if name == "start":
            self._recall()
        elif name == "round":
            self._link.reset_crash_count()
        self._soon()

    def _starting(self) -> None:
        self._gives_way = False
        swarm = None if self.view.solo else self.view.swarm  # the node before may have told of its own
        begun = dict(reason="", until=None, ruling=None, step=None, step_since=self._clock())
        self._change(state=NodeStatus.STARTING, swarm=swarm, **begun)

    def _stopped(self) -> None:
        self._at_rest(NodeStatus.PAUSED, reason=tr("Shoal waits until you start it."), until=None)

    def _again(self, sentence: str, wait: float) -> None:
        self._at_rest(NodeStatus.WAITING, reason=sentence, until=self._clock() + wait)

    def _failed(self, problem: Problem) -> None:
        self._at_rest(NodeStatus.FAILED, problem=problem, reason=problem.sentence, until=None)
        self.failed.emit(problem)

    def _at_rest(self, state: NodeStatus, **fields: object) -> None:
        """Called when no node runs any more."""
        if self.view.swarm is not None:
            fields["swarm"] = msgspec.structs.replace(self.view.swarm, connected=False, sentence="")
        self._change(state=state, ruling=None, step=None, done=0, total=0, left_s=None, **fields)

    def _recall(self) -> None:
        self._past.start_reading(str(self._choices["model"]), self.view.skill.removeprefix(OWNERS_PREFIX))

    def _recalled(self, found: history.History) -> None:
        if found.curve or found.rounds or found.runs:
            if _last(found.rounds) >= _last(self._fold.view.rounds):
                self._fold.recall(found)
            self._fold.tick(self._clock())
        self._soon()

    def _new_minute(self) -> None:
        self._fold.tick(self._clock())
        self._awaited = max(0, self._awaited - 1)
        if self._awaited and self._awaited % (INSIST_S / 60) == 0 and not _held(self.view):
            if any(point.share for point in self.view.curve):
                self._awaited = 0
            else:
                self._link.tell(command="insist", seconds=INSIST_S)
        self._soon()

    def _remember(self, **fields: object) -> None:
        with contextlib.suppress(OSError):  # a full disk is told by the node
            self._choices.remember_window(**fields)

    def _change(self, **fields: object) -> None:
        self._fold.change(**fields)
        self._soon()

    def _soon(self) -> None:
        if not self._tick.isActive():
            self._tick.start()

    def _tell(self) -> None:
        self.changed.emit(self._fold.view)


def _held(view: View) -> bool:
    """Whether a person's order stops learning: a pause, a teacher's pause or hours, which a new model must not
    end."""
    return _ordered(view) or view.state in (NodeStatus.PAUSED, NodeStatus.STOPPING, NodeStatus.FAILED)


def _ordered(view: View) -> bool:
    """Whether a node runs that a person's order holds back."""
    return view.ruling is not None and view.ruling.reason in _ORDERS


def _last(rounds: tuple[Round, ...]) -> int:
    return rounds[-1].round if rounds else 0
