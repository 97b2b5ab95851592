"""Between the node and the pages: takes lines in, gives one View a tick out, and does what buttons ask for."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.ui import past
from app.ui.choices import Choices
from app.ui.fold import Fold, FoldError
from app.ui.link import Link
from app.ui.model import Group, Problem, Round, State, Swarm, View
from app.ui.texts import tr

TICK_MS = 200
"""Pages are redrawn at most this often."""
DAY_MS = 60_000


class Control(QObject):
    """`view` is current; `changed` comes at most once a tick. Commands return at once."""

    changed = Signal(object)
    failed = Signal(object)
    _read = Signal(object)
    _found = Signal(object)

    def __init__(
        self, home: Path, choices: Choices, link: Link, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__()
        self._home, self._choices, self._link, self._clock = home, choices, link, clock
        memory = choices.memory
        paused = memory.asked and not memory.learning
        state = State.NEW if not memory.asked else State.PAUSED
        self._fold = Fold(View(home=str(home), state=state, until=memory.paused_until if paused else None))
        self._folder: Path | None = None
        self._tick = QTimer(self, singleShot=True, interval=TICK_MS)
        self._tick.timeout.connect(self._tell)
        self._resume = QTimer(self, singleShot=True)
        self._resume.timeout.connect(self._pause_over)
        self._day = QTimer(self, interval=DAY_MS)
        self._day.timeout.connect(self._new_minute)
        self._day.start()
        self._invite = ""
        self._read.connect(self._recalled)
        self._found.connect(self._saw)
        link.line.connect(self._line)
        link.started.connect(self._starting)
        link.stopped.connect(self._stopped)
        link.again.connect(self._again)
        link.failed.connect(self._failed)

    @property
    def view(self) -> View:
        return self._fold.view

    def open(self) -> None:
        """Reads the past in the background and goes on learning where that is wanted."""
        self._recall()
        memory, now = self._choices.memory, self._clock()
        if not memory.asked:
            return
        if memory.paused_until is not None and memory.paused_until > now:
            self._wait_until(memory.paused_until)
        elif (memory.learning or memory.paused_until is not None) and self._choices["learn_at_start"]:
            self.start()

    def learn(self, company: str) -> None:
        """Learns "alone" or with "others" from now on, and at every later start."""
        with contextlib.suppress(OSError):
            self._choices.put("company", company)
        self._invite = ""
        self.start()

    def join(self, invite: str) -> None:
        """Learns with others, by this invite or address; without one, where the node finds or makes a swarm.
        The node remembers where it was, so the invite is not kept here."""
        with contextlib.suppress(OSError):
            self._choices.put("company", "others")
        self._invite = invite
        self.start()

    def start(self) -> None:
        """Learns from now on."""
        self._resume.stop()
        self._remember(asked=True, learning=True, paused_until=None)
        alone = self._choices["company"] == "alone"
        self._change(
            state=State.STARTING,
            reason="",
            until=None,
            problem=None,
            solo=alone,
            swarm=None if alone else Swarm(),
        )
        self._link.start(self._options())

    def pause(self, until: float | None = None) -> None:
        """Ends the node's process, so that memory and graphics card are free; with `until`, only up to then."""
        self._remember(learning=False, paused_until=until)
        if until is not None:
            self._wait_until(until)
        self._change(
            state=State.STOPPING if self._link.running else State.PAUSED, until=until, problem=None, reason=""
        )
        self._link.stop()

    def close(self) -> None:
        """Ends the node and returns when it is gone. What was learning goes on learning at the next start."""
        self._link.stop_and_wait()

    def _options(self) -> list[str]:
        where = ["--relay", self._invite] if self._invite else []
        return [
            *(["--solo"] if self._choices["company"] == "alone" else where),
            "--recipe",
            str(self._choices["recipe"]),
            "--probe-every",
            str(self._choices["probe_every"]),
        ]

    def _line(self, line: bytes) -> None:
        now = self._clock()
        try:
            name = self._fold.line(line, now)
        except FoldError:
            return  # one bad line is not worth the whole picture; a dead node says so by ending
        if self._choices.memory.learning is False:
            self._fold.change(state=State.STOPPING)
        if name == "start":
            self._recall()
        elif name == "round":
            self._link.finished_something()
        elif name == "checkpoint" and self._folder is not None:
            self._look_for_groups(self._fold.view.safe_round)
        self._soon()

    def _starting(self) -> None:
        self._change(state=State.STARTING, reason="", until=None, step=None, step_since=self._clock())

    def _stopped(self) -> None:
        wanted = self._choices.memory.learning
        self._change(
            state=State.PAUSED,
            step=None,
            done=0,
            total=0,
            left_s=None,
            reason=tr("The rounds that were asked for are done.") if wanted else "",
        )

    def _again(self, sentence: str, wait: float) -> None:
        self._change(state=State.WAITING, reason=sentence, until=self._clock() + wait, step=None)

    def _failed(self, problem: Problem) -> None:
        self._change(state=State.FAILED, problem=problem, reason=problem.sentence, until=None, step=None)
        self.failed.emit(problem)

    def _wait_until(self, until: float) -> None:
        """A timer that also notices when the computer slept or its clock was changed: it looks again every
        minute."""
        left = max(0.0, until - self._clock())
        self._resume.start(int(min(left, 60.0) * 1000) + 50)

    def _pause_over(self) -> None:
        until = self._choices.memory.paused_until
        if until is None:
            return
        if self._clock() < until:
            self._wait_until(until)
        else:
            self.start()

    def _recall(self) -> None:
        """Reads the history beside the window's own work: a large one takes a moment."""

        def work() -> None:
            found = past.read(past.newest(self._home))
            with contextlib.suppress(RuntimeError):  # the window is gone
                self._read.emit(found)

        threading.Thread(target=work, daemon=True).start()

    def _recalled(self, found: past.Past) -> None:
        self._folder = found.folder
        if found.curve or found.rounds:
            if _last(found.rounds) >= _last(self._fold.view.rounds):
                self._fold.recall(found)
            self._fold.tick(self._clock())
        self._soon()

    def _look_for_groups(self, round: int) -> None:
        folder = self._folder
        assert folder is not None

        def work() -> None:
            found = past.groups_of(folder, round)
            with contextlib.suppress(RuntimeError):
                self._found.emit(found)

        threading.Thread(target=work, daemon=True).start()

    def _saw(self, groups: tuple[Group, ...]) -> None:
        if groups:
            self._fold.saw_groups(groups)
            self._soon()

    def _new_minute(self) -> None:
        self._fold.tick(self._clock())
        self._soon()

    def _remember(self, **fields: object) -> None:
        with contextlib.suppress(OSError):  # a full disk is told by the node; pausing must work on one
            self._choices.remember(**fields)

    def _change(self, **fields: object) -> None:
        self._fold.change(**fields)
        self._soon()

    def _soon(self) -> None:
        if not self._tick.isActive():
            self._tick.start()

    def _tell(self) -> None:
        self.changed.emit(self._fold.view)


def _last(rounds: tuple[Round, ...]) -> int:
    return rounds[-1].round if rounds else 0
