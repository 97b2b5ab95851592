"""The real window on a real X server with the real node: started, looked at, paused, killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180

pytestmark = pytest.mark.long


def wait(found: Callable[[], object], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < until, what
        time.sleep(0.3)


@pytest.fixture
def display(xvfb: str) -> Iterator[str]:
    read, write = os.pipe()
    server = subprocess.Popen(
        [xvfb, "-displayfd", str(write), "-screen", "0", "1280x900x24"],
        pass_fds=[write],
        stderr=subprocess.DEVNULL,
    )
    os.close(write)
    number = os.read(read, 16).decode().strip()
    os.close(read)
    yield f":{number}"
    server.terminate()
    server.wait()


@pytest.fixture
def window(display: str, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A window whose owner has said before that it shall learn alone."""
    (tmp_path / "window-state.json").write_text(json.dumps(dict(asked=True, learning=True)))
    running = start(display, tmp_path)
    yield running
    for process in family(running.pid):
        with contextlib.suppress(psutil.Error):
            process.kill()
    running.wait()


def start(display: str, home: Path) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if name != "QT_QPA_PLATFORM"}
    return subprocess.Popen(
        [sys.executable, "-m", "app.cli", "window", "--home", str(home)],
        cwd=ROOT,
        env={**environment, "DISPLAY": display},
    )


def family(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def rounds(home: Path) -> int:
    from app.ui import past

    return len(past.read(past.newest(home)).rounds)


def test_it_learns_pauses_and_goes_with_its_window(
    window: subprocess.Popen[bytes], display: str, tmp_path: Path
) -> None:
    from app.ui import past

    wait(lambda: past.read(past.newest(tmp_path)).curve, "the curve has its first point")
    wait(lambda: rounds(tmp_path) >= 1, "a round is done")
    with_trainer = family(window.pid)
    assert len(with_trainer) >= 3, "window, node, trainer"

    press(display, "ctrl+p")
    wait(lambda: len(family(window.pid)) == 1, "node and trainer are gone, and their memory with them")
    kept = rounds(tmp_path)
    press(display, "ctrl+p")
    wait(lambda: rounds(tmp_path) > kept, "it goes on where it was")

    children = family(window.pid)[1:]
    window.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
    assert not alive, "a killed window leaves nothing running"

    again = start(display, tmp_path)
    kept = rounds(tmp_path)
    wait(lambda: rounds(tmp_path) > kept, "the next window goes on with the same history")
    again.send_signal(signal.SIGTERM)
    assert again.wait(PATIENCE_S) == 0


def press(display: str, keys: str) -> None:
    """A key in Shoal's window, as a person presses it; there is no window manager that would give it the
    focus."""
    environment = {**os.environ, "DISPLAY": display}
    found = subprocess.run(
        ["xdotool", "search", "--onlyvisible", "--name", "^Shoal$"],
        capture_output=True,
        text=True,
        env=environment,
    )
    number = found.stdout.split()[-1]
    subprocess.run(["xdotool", "windowfocus", "--sync", number], env=environment, timeout=30)
    subprocess.run(["xdotool", "key", keys], env=environment, check=True, timeout=30)
