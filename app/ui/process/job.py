"""The window's only way to run child processes.

A `Job` runs one command of ours at a time. Its output arrives line by line as `line`, and `ended` is emitted
once for every start. Standard error goes to a log; the last sentence there that is for people is `complaint`. A
job never outlives the window: closing its standard input ends it (commands started with --attached), and a
process that does not end by itself is killed. A job that dies is not restarted; NodeProcess
(app.ui.process.node) does that for the node.

A `JobControl` has some jobs and one frozen value, `state`, with all that they have found out. Pages show that
value and call the control's methods. There is one for models, for the engine, for new versions of Shoal and for
the identity. The messages that jobs print are declared in app.common.job."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, QTimer, Signal

from app.common.files import prepare_log
from app.common.job import Progress, Waiting
from app.common.process.surroundings import child_environment, working_folder
from app.ui.language.texts import translated
from app.ui.view.view import Transfer

T = TypeVar("T")
StateT = TypeVar("StateT", bound=msgspec.Struct)
TransferT = TypeVar("TransferT", bound=Transfer)

COMMAND = ("-m", "app.cli")
MAX_LINE = 2**22
"""Maximum bytes of a line on standard output; a process that prints a longer one is killed."""
GRACE_MS = 1500
"""Milliseconds for a process to end by itself before it is killed."""
NOT_STARTED = -2
"""Emitted by `ended` in place of an exit code if the program could not be started."""
TICK_MS = 250
"""Minimum milliseconds between two progress reports."""
_TAIL = 2**14
"""Bytes at the end of standard error searched for `complaint`."""


class Job(QObject):
    """Runs one command at a time. `line` emits each line of standard output. `ended` emits the exit code, -1 if
    the process died, or NOT_STARTED; not after `end` or `kill`."""

    line = Signal(bytes)
    ended = Signal(int)

    def __init__(
        self,
        max_line: int = MAX_LINE,
        command: Sequence[str] = COMMAND,
        program: str = sys.executable,
        grace_ms: int = GRACE_MS,
    ) -> None:
        super().__init__()
        self._max_line, self._command, self._program = max_line, list(command), program
        self._process: QProcess | None = None
        self._log: Path | None = None
        self._errors = b""
        self._grace = QTimer(self, singleShot=True, interval=grace_ms)
        self._grace.timeout.connect(lambda: self._process.kill() if self._process is not None else None)

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def pid(self) -> int:
        return self._process.processId() if self._process else 0

    @property
    def complaint(self) -> str:
        """The last sentence that the latest run wrote for people; empty if it wrote none."""
        return last_sentence(self._errors)

    def start(self, arguments: Sequence[str], log: Path | None = None) -> None:
        """Runs the command with these arguments, ending a previous run. Standard error is appended to `log`."""
        self.end()
        self._log, self._errors = log, b""
        process = self._process = QProcess(self)
        apply_surroundings(process)
        process.readyReadStandardOutput.connect(lambda: self._read_lines(process))
        process.readyReadStandardError.connect(lambda: self._read_errors(process))
        process.finished.connect(lambda code, status: self._finished(process, code, status))
        process.errorOccurred.connect(lambda error: self._refused(process, error))
        process.start(self._program, [*self._command, *arguments])

    def write(self, line: bytes) -> None:
        if self._process is not None:
            self._process.write(line)

    def stop(self) -> None:
        """Closes standard input, which asks the process to end, and kills it after GRACE_MS. Emits `ended`."""
        if self._process is not None:
            self._process.closeWriteChannel()
            self._grace.start()

    def end(self, wait: bool = False) -> None:
        """Ends the process like `stop`, but emits no more signals. `wait`: returns when it has ended."""
        process = self._forget()
        if process is None:
            return
        process.closeWriteChannel()
        if wait and not process.waitForFinished(self._grace.interval()):
            process.kill()
            process.waitForFinished(self._grace.interval())

    def kill(self, wait: bool = False) -> None:
        """Kills the process and emits no more signals. `wait`: returns when it has ended."""
        process = self._forget()
        if process is not None:
            process.kill()
            if wait:
                process.waitForFinished(self._grace.interval())

    def _forget(self) -> QProcess | None:
        self._grace.stop()
        process, self._process = self._process, None
        if process is not None:
            process.finished.connect(process.deleteLater)
        return process

    def _read_lines(self, process: QProcess) -> None:
        while process is self._process and process.canReadLine():
            self.line.emit(bytes(process.readLine(self._max_line).data()))
        if process is self._process and process.bytesAvailable() > self._max_line:
            self.kill()
            self.ended.emit(-1)

    def _read_errors(self, process: QProcess) -> None:
        said = bytes(process.readAllStandardError().data())
        if process is not self._process or not said:
            return
        self._errors = (self._errors + said)[-_TAIL:]
        if self._log is not None:
            with contextlib.suppress(OSError), prepare_log(self._log).open("ab") as file:
                file.write(said)

    def _finished(self, process: QProcess, code: int, status: QProcess.ExitStatus) -> None:
        self._read_lines(process)
        self._read_errors(process)
        if process is self._process:
            self._forget()
            process.deleteLater()
            self.ended.emit(code if status is QProcess.ExitStatus.NormalExit else -1)

    def _refused(self, process: QProcess, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart and process is self._process:
            self._forget()
            self.ended.emit(NOT_STARTED)


MakeJob = Callable[[], Job]


class JobControl(QObject, Generic[StateT]):
    """Runs jobs and keeps their results in `state`; `changed` emits every new one. Before a control changes
    what a node works with, it emits `resting`: no node may run until it emits `awake`."""

    changed = Signal(object)
    resting = Signal()
    awake = Signal()

    def __init__(
        self, home: Path, state: StateT, log: str, make: MakeJob = Job, reads: Sequence[str] = ()
    ) -> None:
        """`log` is the name of the log in HOME/logs, empty for none. `refresh` runs the command `reads`, and
        `_read` gets its lines."""
        super().__init__()
        self._home, self.state = home, state
        self._log_name, self._make, self._reads = log, make, list(reads)
        self._jobs: list[Job] = []
        self._tick = QTimer(self, singleShot=True, interval=TICK_MS)
        self._tick.timeout.connect(lambda: self.changed.emit(self.state))
        self._again = False
        self._reader = self._job(self._read, self._has_read)

    def refresh(self) -> None:
        """Reads everything again in the background. If a read is in progress, another one follows it, because
        values already read may have changed."""
        self._again = self._reader.running
        if self._reads and not self._again:
            self._reader.start(self._reads, self._log)

    def close(self) -> None:
        """Ends every job and returns when all have ended; no signals are emitted after this. Called when the
        window closes."""
        self.blockSignals(True)
        for timer in self.findChildren(QTimer):
            timer.stop()
        for job in self._jobs:
            job.end(wait=True)

    def _job(self, line: Callable[[bytes], None], ended: Callable[[int], None]) -> Job:
        """Creates another job of this control."""
        job = self._make()
        job.line.connect(line)
        job.ended.connect(ended)
        self._jobs.append(job)
        return job

    @property
    def _log(self) -> Path | None:
        """Path of the log; None before there is a data folder, which a log must not create."""
        return self._home / "logs" / self._log_name if self._log_name and self._home.is_dir() else None

    def _read(self, line: bytes) -> None:
        """Handles a line of the command `reads`."""

    def _has_read(self, code: int) -> None:
        if self._again:
            self.refresh()

    def _change(self, **fields: object) -> None:
        self.state = msgspec.structs.replace(self.state, **fields)
        self._tick.stop()
        self.changed.emit(self.state)

    def _change_soon(self, **fields: object) -> None:
        """Changes the state for progress reports, which pages show within TICK_MS."""
        self.state = msgspec.structs.replace(self.state, **fields)
        if not self._tick.isActive():
            self._tick.start()


def updated_transfer(transfer: TransferT, event: Progress | Waiting) -> TransferT:
    """Returns the transfer with the progress of this event, or with why it waits and until when."""
    if isinstance(event, Waiting):
        at = time.time() + event.seconds
        return msgspec.structs.replace(
            transfer, note=translated(event.sentence), retry_at=at, per_second=None, left_s=None
        )
    told = {name: getattr(event, name) for name in ("have", "total", "per_second", "left_s")}
    return msgspec.structs.replace(transfer, **told, note="", retry_at=None)


def decoded(line: bytes, kind: type[T]) -> T | None:
    """Decodes a line of JSON as this type; returns None if it does not fit, such as one of a newer version."""
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.MsgspecError:
        return None


def last_sentence(errors: bytes) -> str:
    """Returns the last line of standard error that a command of ours wrote for people, without the command's
    name.

    >>> last_sentence(b"A note.\\nshoal models: It is gone: look.\\nTraceback\\n"), last_sentence(b"Killed")
    ('It is gone: look.', '')
    """
    lines = errors.decode("utf-8", "replace").splitlines()
    said = next((line for line in reversed(lines) if line.startswith("shoal")), "")
    return said.partition(": ")[2] or said


def apply_surroundings(process: QProcess) -> None:
    """Gives a process that is not started yet the environment of our child processes, and a working directory
    that exists."""
    environment = QProcessEnvironment()
    for name, value in child_environment().items():
        environment.insert(name, value)
    process.setProcessEnvironment(environment)
    process.setWorkingDirectory(working_folder())
