"""Real commands in real processes, with a real engine."""

from __future__ import annotations

import json
import os
import queue
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import threading
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.interrupting import interruptible

ROOT = Path(__file__).parents[2]
PATIENCE_S = 240.0
"""How long a line is waited for. Not a budget: other work may share the machine."""

QUICK_PROBES = ("--probe-questions", "16")
"""The smallest probe: what these tests are about is not how well a model does."""

Event = dict[str, Any]


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "app.cli", *map(str, arguments)]


def python_with(packages: Path, folder: Path) -> str:
    """A Python of an environment made in `folder`, which finds `packages` before what is installed."""
    venv.create(folder, symlinks=True)
    (place,) = folder.glob("lib/python*/site-packages")
    (place / "first.pth").write_text(f"{packages}\n{sysconfig.get_path('purelib')}\n")
    return str(folder / "bin" / "python")


def shoal(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """One command, from start to end."""
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE_S, **options
    )


class Running:
    """A node in the background, whose events are read as they come."""

    def __init__(
        self,
        *arguments: str | Path,
        prefix: Sequence[str] = (),
        alone: bool = True,
        stdin: int | None = None,
        **environment: str,
    ) -> None:
        solo = ("--solo",) if alone else ()
        with interruptible():
            self.process = subprocess.Popen(
                [*prefix, *command("run", *solo, "--json", *QUICK_PROBES, *arguments)],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                env={**os.environ, **environment},
            )
        self.events: list[Event] = []
        self._lines: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._said: list[str] = []
        self._readers = [threading.Thread(target=one, daemon=True) for one in (self._read, self._listen)]
        for reader in self._readers:
            reader.start()

    def wait_for(self, wanted: Callable[[Event], bool], patience_s: float = PATIENCE_S) -> Event:
        """The next event that is wanted. Raises AssertionError when the node ends or stays silent before."""
        deadline = time.monotonic() + patience_s
        while True:
            event = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            assert event is not None, f"the node ended: {self.said}"
            if wanted(event):
                return event

    def wait_for_kind(self, kind: str) -> Event:
        return self.wait_for(lambda event: event["event"] == kind)

    def order(self, name: str, **details: object) -> None:
        """A command, as a window gives it; with `stdin` a pipe."""
        self.order_line(json.dumps({"command": name, **details}))

    def order_line(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def trainer(self) -> int:
        """Process id of the trainer."""
        return child(self.process.pid, "app.node.trainer.process")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """As Ctrl-C does; returns the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.wait()

    def wait(self) -> int:
        """Until it ends and all it said is read; returns the exit code."""
        code = self.process.wait(PATIENCE_S)
        for reader in self._readers:
            reader.join(PATIENCE_S)
        return code

    @property
    def said(self) -> str:
        """What it told people so far."""
        return "".join(self._said)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            self.events.append(event)
            self._lines.put(event)
        self._lines.put(None)

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._said.append(line)


def child(parent: int, module: str) -> int:
    """Process id of the child that runs a module; waits for it."""
    import psutil

    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for process in psutil.Process(parent).children(recursive=True):
            try:
                if module in process.cmdline():
                    return process.pid
            except psutil.Error:
                continue
        time.sleep(0.02)
    raise AssertionError(f"no child runs {module}")


def checkpoints(home: Path) -> Path:
    (found,) = home.glob("models/*/checkpoints")
    return found


def rows(home: Path, query: str) -> list[tuple[Any, ...]]:
    (history,) = home.glob("models/*/history.sqlite")
    with sqlite3.connect(history) as db:
        return db.execute(query).fetchall()
