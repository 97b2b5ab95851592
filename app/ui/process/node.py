"""The node: a job that is restarted with back-off when it dies.

The node writes one JSON object a line to standard output. Commands go to its standard input
(app.node.record.commands); closing that ends it. When it ends without an `end` event, the last sentence on its
standard error says why."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.common.process.surroundings import FROM_STDIN
from app.common.rate import backoff_s
from app.ui.language.texts import tr, translated
from app.ui.process.job import NOT_STARTED, Job
from app.ui.view.view import Problem
from engines import remedy

NODE = ("-m", "app.cli", "run", "--snapshots", "--rules")
MAX_LINE = 16 * 2**20
GRACE_MS = 8_000
"""Milliseconds for a node to end by itself before it is killed."""
SWARM_OPTIONS = ("--solo", "--private", "--relay", FROM_STDIN)
"""The options that determine with whom a node learns."""
CRASHES = 5
"""Number of crashes in a row without a finished round after which a node is not restarted automatically."""


class NodeProcess(QObject):
    """Runs one node at a time. Signals: `line` for every message, `stopped` when it ended as requested, `again`
    with a sentence and the seconds until the restart, `failed` with a Problem when it is not restarted."""

    line = Signal(bytes)
    started = Signal()
    stopped = Signal()
    again = Signal(str, float)
    failed = Signal(object)

    def __init__(self, home: Path, command: Sequence[str] = NODE, program: str = sys.executable) -> None:
        super().__init__()
        self._home, self._program = home, program
        self._job = Job(MAX_LINE, command, program, GRACE_MS)
        self._job.line.connect(self._heard)
        self._job.ended.connect(self._ended)
        self._options: list[str] = []
        self._secret = ""
        self._later: list[bytes] = []
        self._wanted = self._closing = self._leaving = False
        self._crashes = 0
        self._reached_start = False
        self._end_event: dict[str, object] = {}
        self._restart = QTimer(self, singleShot=True)
        self._restart.timeout.connect(self._launch)

    @property
    def running(self) -> bool:
        return self._job.running

    @property
    def wanted(self) -> bool:
        """Whether a node runs, or is about to be restarted."""
        return self._wanted

    @property
    def closing(self) -> bool:
        """Whether the running node was told to end, so that its reports are out of date."""
        return self.running and self._closing

    def runs_with(self, options: Sequence[str], secret: str) -> bool:
        """Whether a node runs with these options and this secret, and is not ending."""
        same = list(options) == self._options and secret == self._secret
        return self.running and not self._closing and same

    def differs_only_in_swarm(self, options: Sequence[str]) -> bool:
        """Whether a node runs that is not ending, and differs from these options at most in its swarm. If so,
        `start` lets it finish the current round, measurement or placement."""
        return self.running and not self._closing and _own(options) == _own(self._options)

    @property
    def pid(self) -> int:
        return self._job.pid

    def start(self, options: Sequence[str], secret: str = "") -> None:
        """Starts a node with these options, now or as soon as the running one has ended. One with other options
        is ended first; see `differs_only_in_swarm`. A `secret` becomes the first line of its standard input
        (app.common.process.surroundings)."""
        other = list(options) != self._options or secret != self._secret
        leaves = self.differs_only_in_swarm(options)
        self._options, self._secret, self._wanted, self._crashes = list(options), secret, True, 0
        self._restart.stop()
        if not self.running:
            self._launch()
        elif other and leaves:
            self.tell(command="leave")
            self._leaving = True
        elif other:
            self._close()

    def renew(self) -> None:
        """Restarts the node with the same options, because something it uses has changed."""
        self._crashes = 0
        self._restart.stop()
        if not self.running:
            self._launch()
        elif not self._closing:
            self._close()

    def tell(self, **command: object) -> None:
        """Sends the node a command, or keeps it for the next one if none is running. A node that is shutting
        down may end before it reads a command, so the next one gets it too; but "finish" goes only to the old
        node."""
        line = json.dumps(command).encode() + b"\n"
        there, name = self.running and not self._closing, command["command"]
        if not there or (self._leaving and name != "finish"):
            self._later.append(line)
        if there:
            self._job.write(line)

    def stop(self) -> None:
        """Ends the node by closing its pipe; it saves its state. Emits `stopped`."""
        self._wanted = False
        self._later.clear()
        self._restart.stop()
        if self.running:
            self._close()
        else:
            self.stopped.emit()

    def _close(self) -> None:
        self._closing = True
        self._job.stop()

    def stop_and_wait(self) -> None:
        """Ends the node and returns when it has ended. Called when the window closes."""
        self._wanted = False
        self._restart.stop()
        self._job.end(wait=True)

    def reset_crash_count(self) -> None:
        """Called after a finished round: earlier crashes no longer count."""
        self._crashes = 0
        self._reached_start = True

    def _launch(self) -> None:
        if self.running or not self._wanted:
            return
        self._end_event = {}
        self._reached_start = self._closing = self._leaving = False
        log = self._home / "logs" / "node.log"
        self._job.start(["--home", str(self._home), *self._options], log)
        if self._secret:
            self._job.write(self._secret.encode() + b"\n")
        for line in self._later:
            self._job.write(line)
        self._later.clear()
        self.started.emit()

    def _heard(self, line: bytes) -> None:
        if line.startswith(b'{"event":"start"'):
            self._reached_start = True
        elif line.startswith(b'{"event":"end"'):
            self._end_event = json.loads(line)
        self.line.emit(line)

    def _ended(self, code: int) -> None:
        if not self._wanted:
            self.stopped.emit()
        elif code == NOT_STARTED:
            self._refused()
        elif self._closing or self._leaving:  # it made room for one that was asked for meanwhile
            self._launch()
        elif self._end_event.get("reason") in ("rounds", "stopped"):
            self._wanted = False
            self.stopped.emit()
        else:
            self._died(code)

    def _refused(self) -> None:
        self._wanted = False
        repair = tr("Run {setup}; it repairs the installation.", setup=remedy.command("setup"))
        cannot = Problem(
            title=tr("Learning can't start"),
            sentence=tr("The system refused to start {program}.", program=self._program),
            remedy=tr("Install Shoal again.") if remedy.installed() else repair,
        )
        self.failed.emit(cannot)

    def _died(self, code: int) -> None:
        """Handles an unexpected end. A refusal by the node itself (exit code 1 or 2 and a sentence) is final,
        unless it came before the start, when an earlier node may just be ending. Everything else is a crash,
        and leads to a restart."""
        self._crashes += 1
        sentence = str(self._end_event.get("sentence", "")) or self._job.complaint
        refused = code in (1, 2) and bool(sentence)
        if (refused and (self._reached_start or self._crashes > 2)) or self._crashes >= CRASHES:
            self._wanted = False
            self.failed.emit(problem(translated(sentence)))
            return
        wait = backoff_s(self._crashes, first_s=1.0, longest_s=60.0, growth=4.0)
        self._restart.start(int(wait * 1000))
        crashed = tr("Learning crashed. Everything up to the last save is safe.")
        self.again.emit(translated(sentence) or crashed, wait)


def _own(options: Sequence[str]) -> list[str]:
    return [option for option in options if option not in SWARM_OPTIONS]


def problem(sentence: str) -> Problem:
    """Splits a node's last sentence ("what: what to do.") into title, sentence and remedy."""
    what, colon, remedy = sentence.partition(": ")
    if not sentence:
        what = tr("Learning keeps crashing. What it learned is safe.")
        remedy = tr("Start it again, or look at the log in Settings.")
    elif not colon:
        what, semicolon, remedy = sentence.partition("; ")
        remedy = remedy if semicolon else tr("Fix that and start it again.")
    return Problem(
        title=tr("Learning stopped"),
        sentence=what.rstrip(".") + ".",
        remedy=remedy[:1].upper() + remedy[1:].rstrip(".") + ".",
    )
