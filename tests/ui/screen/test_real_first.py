"""The first minutes of a new owner, with a window manager and through assistive technology: first run, learning
alone, the curve moves, a pause that frees the memory, going on, quitting."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.bench.runs.window import prepare
from app.node.data.home import lock_data_folder
from app.node.history import history
from tests.ui.screen.real import (
    PRESS,
    end,
    ended,
    family,
    managed,
    node,
    picture,
    press,
    rounds,
    scorer,
    screen,
    start,
    trainer,
    wait,
)

pytestmark = pytest.mark.long

PYTHON = Path("/usr/bin/python3")


@pytest.fixture
def session() -> Iterator[dict[str, str]]:
    """A session bus with the accessibility bus behind it, as environment variables."""
    known = (
        PYTHON.exists()
        and subprocess.run([PYTHON, "-c", "import pyatspi"], capture_output=True).returncode == 0
    )
    launcher = Path("/usr/libexec/at-spi-bus-launcher")
    if not known or not launcher.exists() or not shutil.which("dbus-daemon") or not shutil.which("openbox"):
        pytest.skip("python3-pyatspi, at-spi2-core, dbus and openbox are needed")
    bus = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert bus.stdout is not None
    address = bus.stdout.readline().strip()
    variables = {"DBUS_SESSION_BUS_ADDRESS": address, "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1"}
    access = subprocess.Popen(
        [launcher, "--launch-immediately"], env={**os.environ, **variables}, stderr=subprocess.DEVNULL
    )
    yield variables
    for process in (access, bus):
        process.terminate()
        process.wait()


def push(display: str, session: dict[str, str], name: str) -> None:
    """Presses a button as a screen reader does."""
    done = subprocess.run(
        [PYTHON, "-c", PRESS, name],
        env={**os.environ, **session, "DISPLAY": display},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr


def test_from_the_first_run_to_quitting(xvfb: str, session: dict[str, str], tmp_path: Path) -> None:
    prepare(tmp_path)  # this computer is shared with other tests: no rule may hold it back
    (tmp_path / "window-state.json").unlink()
    (tmp_path / "window.json").write_text('{"probe_every": 2}')
    with screen(xvfb) as display, managed(display, tmp_path / "openbox.txt"):
        running = start(display, tmp_path, **session)
        try:
            time.sleep(2)
            assert node(running.pid) is None, "nothing runs before its owner has said so"
            picture(display, "first-1-welcome")
            push(display, session, "Learn alone")

            wait(lambda: len(history.read(history.newest(tmp_path)).curve) >= 2, "the curve moves")
            picture(display, "first-2-curve")
            working = trainer(running.pid)
            assert working is not None
            assert "--solo" in (node(running.pid) or psutil.Process()).cmdline()
            assert not any(one.net_connections("inet") for one in family(running.pid)), "no socket is open"

            busy = working.memory_info().rss
            before = sum(one.memory_info().rss for one in family(running.pid))
            press(display, "ctrl+p")
            wait(lambda: trainer(running.pid) is None and scorer(running.pid) is None, "the trainer is gone")
            time.sleep(2)
            after = sum(one.memory_info().rss for one in family(running.pid))
            print(
                f"Paused: {before / 1e6:.0f} MB before, {after / 1e6:.0f} MB after; "
                f"the trainer had {busy / 1e6:.0f} MB."
            )
            assert before - after > 0.8 * busy, "and its memory is back"
            picture(display, "first-3-paused")

            kept = rounds(tmp_path)
            push(display, session, "Learn while I'm away")
            wait(lambda: rounds(tmp_path) > kept, "it goes on")
            picture(display, "first-4-resumed")

            everything = family(running.pid)
            subprocess.run(["wmctrl", "-c", "Shoal"], env={**os.environ, "DISPLAY": display}, check=True)
            push(display, session, "Stop learning and quit")  # no tray here, so closing asks
            assert running.wait(120) == 0
            assert ended(everything)
            with lock_data_folder(tmp_path):
                pass
        finally:
            end(running)
