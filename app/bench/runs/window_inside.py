"""Measures the window from inside, for `./shoal bench window`: `python -m app.bench.runs.window_inside HOME
[--live]` prints one JSON object. The environment variable BORN is the time just before this process was
started; memory is resident memory in MB.

With --live the window starts the real node of HOME, lets it learn some rounds, and pauses it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

BORN = "SHOAL_BENCH_BORN"
ROUNDS = 3
PATIENCE_S = 300.0
SETTLE_S, WATCH_S = 3.0, 15.0
"""After the trainer has gone, and how long the paused processes are watched."""


def main(home: Path, live: bool) -> None:
    from PySide6.QtWidgets import QApplication

    QApplication.setQuitOnLastWindowClosed(False)
    application = QApplication([])
    from app.ui.shell.desktop import Desktop

    desktop = Desktop(application, home, "light")
    desktop.window.show()
    _seen(desktop.window, application.processEvents)
    found: dict[str, Any] = dict(
        first_frame_s=time.time() - float(os.environ[BORN]),
        first_frame_cpu_s=_cpu_s(psutil.Process()),
        platform=application.platformName(),
    )
    if live:
        found |= _learning(desktop)
    desktop.control.close()
    print(json.dumps(found), flush=True)


def _learning(desktop: Any) -> dict[str, float]:
    """Memory while it learns, processor time while it is paused."""
    from app.ui.view.view import NodeStatus

    own, control = psutil.Process(), desktop.control
    control.open()
    _until(lambda: control.view.safe_round >= ROUNDS, "some rounds are done")
    node = psutil.Process(desktop.node_pid)
    window_mb, node_mb = (process.memory_info().rss / 1e6 for process in (own, node))
    control.pause()
    _until(lambda: control.view.state is NodeStatus.PAUSED and not _trains(node), "the trainer has ended")
    _pass(SETTLE_S)
    before, began = [_cpu_s(process) for process in (own, node)], time.monotonic()
    _pass(WATCH_S)
    passed = time.monotonic() - began
    window, paused = (
        100 * (_cpu_s(process) - first) / passed for process, first in zip((own, node), before, strict=True)
    )
    return dict(
        window_mb=window_mb,
        node_mb=node_mb,
        node_paused_mb=node.memory_info().rss / 1e6,
        scorer_paused_mb=sum(child.memory_info().rss for child in node.children()) / 1e6,
        paused_cpu_percent=window + paused,
        paused_window_cpu_percent=window,
        paused_node_cpu_percent=paused,
    )


def _seen(widget: Any, process_events: Callable[[], None]) -> None:
    """Waits until the window is painted on screen; before that the system asks for no frame."""
    end = time.monotonic() + PATIENCE_S
    while not widget.windowHandle().isExposed() and time.monotonic() < end:
        process_events()
    process_events()


def _trains(node: psutil.Process) -> bool:
    """Whether a trainer runs; the node's other child, which scores answers, always does."""
    for child in node.children():
        with contextlib.suppress(psutil.Error):  # it has just gone
            if "app.node.trainer.process" in child.cmdline():
                return True
    return False


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _until(done: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > end:
            raise SystemExit(f"Waited {PATIENCE_S:.0f} s in vain until {what}.")
        _pass(0.1)


def _pass(seconds: float) -> None:
    from PySide6.QtCore import QEventLoop, QTimer

    loop = QEventLoop()
    QTimer.singleShot(int(seconds * 1000), loop.quit)
    loop.exec()


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--live" in sys.argv[2:])
