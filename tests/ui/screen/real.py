"""Driving the real window: an X server in memory, the processes below a window, its keys, its history."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[3]
PATIENCE_S = 900

PRESS = """
import sys, time
import pyatspi

def found(node, name, depth=0):
    if node is None or depth > 30:
        return None
    try:
        if node.name == name and node.getState().contains(pyatspi.STATE_SHOWING) and node.getRoleName() in (
                "push button", "check box", "toggle button"):
            return node
        children = [node.getChildAtIndex(at) for at in range(node.childCount)]
    except Exception:
        return None
    return next(filter(None, (found(child, name, depth + 1) for child in children)), None)

for _ in range(240):
    desktop = pyatspi.Registry.getDesktop(0)
    programs = [desktop.getChildAtIndex(at) for at in range(desktop.childCount)]
    button = next(filter(None, (found(program, sys.argv[1]) for program in programs)), None)
    if button is not None and button.getState().contains(pyatspi.STATE_ENABLED):
        break
    time.sleep(0.25)
else:
    sys.exit(f"no button {sys.argv[1]!r}")
action = button.queryAction()
names = [action.getName(at) for at in range(action.nActions)]
action.doAction(names.index("Press" if "Press" in names else "Toggle"))
"""
"""Run by a Python that has pyatspi: presses the button of that name as a screen reader does, once it is shown
and enabled."""


def wait(found: Callable[[], object], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < until, what
        time.sleep(0.3)


@contextlib.contextmanager
def screen(xvfb: str, size: str = "1280x900") -> Iterator[str]:
    """A screen of that size in memory; its name as DISPLAY has it."""
    read, write = os.pipe()
    server = subprocess.Popen(
        [xvfb, "-displayfd", str(write), "-screen", "0", f"{size}x24"],
        pass_fds=[write],
        stderr=subprocess.DEVNULL,
    )
    os.close(write)
    with os.fdopen(read) as pipe:
        number = pipe.readline().strip()  # to its end: a server that cannot write it all dies of that
    try:
        yield f":{number}"
    finally:
        server.terminate()
        server.wait()


@contextlib.contextmanager
def managed(display: str, words: Path) -> Iterator[None]:
    """With a window manager: without one no window ever has the keyboard. What it says goes into the file
    `words`. One that ends at once, as happens on a busy computer, is started again."""
    environment = {**os.environ, "DISPLAY": display}
    for _ in range(5):
        with words.open("a") as file:
            manager = subprocess.Popen(["openbox"], env=environment, stderr=file)
        while (
            manager.poll() is None
            and subprocess.run(
                ["xdotool", "get_desktop"],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ).returncode
        ):
            time.sleep(0.1)
        if manager.poll() is None:
            break
    assert manager.poll() is None, words.read_text()
    try:
        yield
        assert manager.poll() is None, words.read_text()
    finally:
        manager.terminate()
        manager.wait()


def end(running: subprocess.Popen[bytes]) -> None:
    for process in family(running.pid):
        with contextlib.suppress(psutil.Error):
            process.kill()
    running.wait()


def start(display: str, home: Path, *options: str, **variables: str) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if name != "QT_QPA_PLATFORM"}
    return subprocess.Popen(
        [sys.executable, "-m", "app.cli", "window", "--home", str(home), *options],
        cwd=ROOT,
        env={**environment, "DISPLAY": display, **variables},
    )


def family(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def rounds(home: Path) -> int:
    from app.node.history import history

    return len(history.read(history.newest(home)).rounds)


def named(pid: int, name: str) -> psutil.Process | None:
    """The process of this window's family that runs a module."""
    for process in family(pid):
        with contextlib.suppress(psutil.Error):
            if name in process.cmdline():
                return process
    return None


def node(pid: int) -> psutil.Process | None:
    return named(pid, "--snapshots")


def trainer(pid: int) -> psutil.Process | None:
    return named(pid, "app.node.trainer.process")


def scorer(pid: int) -> psutil.Process | None:
    return named(pid, "app.sapo.scoring.child")


def ended(processes: list[psutil.Process]) -> bool:
    """Whether all of them have, waited for; one that only its parent has not yet looked at counts as ended."""
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE_S)
    return not [one for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


def picture(display: str, name: str) -> None:
    """Of the whole screen, into the folder that SHOAL_PICTURES names, if it does."""
    if folder := os.environ.get("SHOAL_PICTURES"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        command = ["import", "-display", display, "-window", "root", str(Path(folder) / f"{name}.png")]
        subprocess.run(command, timeout=60, check=False)


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
