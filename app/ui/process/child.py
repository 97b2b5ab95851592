"""A helper process of the window: one command, spoken to in lines. It never outlives the window, because it
ends when its input closes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Signal

from app.common.files import LOG_BYTES, log_with_room
from app.common.process.surroundings import surroundings, working_folder

T = TypeVar("T")
COMMAND = ("-m", "app.cli")
GRACE_MS = 1500
"""Milliseconds that it may take to end by itself when the window ends; then it is killed."""


class Child(QObject):
    """`line` is one line of standard output. `ended` comes once for every start, with the exit code, -1 if it
    died or could not be started; not after `end`."""

    line = Signal(bytes)
    ended = Signal(int)

    def __init__(self, most: int, command: Sequence[str] = COMMAND, program: str = sys.executable) -> None:
        """`most` is the maximum bytes of a line."""
        super().__init__()
        self._most, self._command, self._program = most, list(command), program
        self._process: QProcess | None = None
        self.complaint = ""
        """The last thing that one with `hear` said for people, without its name."""

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def pid(self) -> int:
        return self._process.processId() if self._process else 0

    def start(self, arguments: Sequence[str], log: Path | None = None, hear: bool = False) -> None:
        """Starts it. Its standard error goes to `log`; with `hear`, its last line goes to `complaint`."""
        self.end()
        self.complaint = ""
        process = QProcess(self)
        surround(process)
        if not hear:
            process.setStandardErrorFile(_ready(log), QProcess.OpenModeFlag.Append)
        process.readyReadStandardOutput.connect(lambda: self._read(process))
        process.finished.connect(lambda code, status: self._ended(process, code, status))
        process.errorOccurred.connect(lambda error: self._refused(process, error))
        self._process = process
        process.start(self._program, [*self._command, *arguments])

    def write(self, line: bytes) -> None:
        if self._process is not None:
            self._process.write(line)

    def end(self, wait: bool = False) -> None:
        """Closes its input, which ends it. `wait`: returns when it has ended, whatever that takes."""
        process, self._process = self._process, None
        if process is None:
            return
        process.closeWriteChannel()
        if wait and not process.waitForFinished(GRACE_MS):
            process.kill()
            process.waitForFinished(GRACE_MS)
        elif not wait:
            process.finished.connect(process.deleteLater)

    def kill(self, wait: bool = False) -> None:
        """Kills it; `ended` does not come. `wait`: returns when it has ended."""
        process, self._process = self._process, None
        if process is not None:
            process.finished.connect(process.deleteLater)
            process.kill()
            if wait:
                process.waitForFinished(GRACE_MS)

    def _read(self, process: QProcess) -> None:
        while process is self._process and process.canReadLine():
            self.line.emit(bytes(process.readLine(self._most).data()))
        if process is self._process and process.bytesAvailable() > self._most:
            self.kill()
            self.ended.emit(-1)

    def _ended(self, process: QProcess, code: int, status: QProcess.ExitStatus) -> None:
        self._read(process)
        if process is self._process:
            self._process = None
            self.complaint = _last(bytes(process.readAllStandardError().data()))
            process.deleteLater()
            self.ended.emit(code if status is QProcess.ExitStatus.NormalExit else -1)

    def _refused(self, process: QProcess, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart and process is self._process:
            self._process = None
            self.ended.emit(-1)


MakeChild = Callable[[], Child]


def decoded(line: bytes, kind: type[T]) -> T | None:
    """A line as this type; None for what is not of it, such as the line of a newer version."""
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.MsgspecError:
        return None


def _last(said: bytes) -> str:
    """
    >>> _last(b"A note.\\nshoal identity: It is not there: look.\\n"), _last(b"")
    ('It is not there: look.', '')
    """
    lines = said[-LOG_BYTES:].decode("utf-8", "replace").split("\n")
    words = next((line for line in reversed(lines) if line.strip()), "")
    return (words.partition(": ")[2] or words) if words.startswith("shoal") else words


def surround(process: QProcess) -> None:
    """Gives a process that is about to start its environment and an existing working directory."""
    environment = QProcessEnvironment()
    for name, value in surroundings().items():
        environment.insert(name, value)
    process.setProcessEnvironment(environment)
    process.setWorkingDirectory(working_folder())


def _ready(log: Path | None) -> str:
    """The log's path, after making room in it; without one, output is dropped."""
    if log is not None:
        with contextlib.suppress(OSError):
            return str(log_with_room(log))
    return QProcess.nullDevice()
