"""The real window on a real X server with the real node: started, looked at, paused, killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.bench.runs.window import prepare
from tests.ui.screen.real import (
    PATIENCE_S,
    ROOT,
    end,
    family,
    menu,
    move,
    node,
    press,
    rounds,
    scorer,
    screen,
    start,
    trainer,
    wait,
)

pytestmark = pytest.mark.long


@pytest.fixture
def display(xvfb: str) -> Iterator[str]:
    with screen(xvfb) as name:
        yield name


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Of an owner who has said before that it shall learn, at any time."""
    prepare(tmp_path)
    return tmp_path


@pytest.fixture
def window(display: str, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    running = start(display, home)
    yield running
    end(running)


def test_it_learns_pauses_and_goes_with_its_window(
    window: subprocess.Popen[bytes], display: str, home: Path
) -> None:
    from app.node.history import history

    wait(lambda: history.read(history.newest(home)).curve, "the curve has its first point")
    wait(lambda: rounds(home) >= 1, "a round is done")
    kept_node = node(window.pid)
    assert kept_node is not None and trainer(window.pid) is not None

    press(display, "ctrl+p")
    wait(lambda: trainer(window.pid) is None, "the trainer is gone, and its memory with it")
    assert node(window.pid) == kept_node, "the node stays"
    kept = rounds(home)
    time.sleep(2)  # the window has shown it by now: the same key would pause again
    press(display, "ctrl+p")
    wait(lambda: rounds(home) > kept, "it goes on where it was")

    children = family(window.pid)[1:]
    window.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
    assert not alive, "a killed window leaves nothing running"

    again = start(display, home)
    kept = rounds(home)
    wait(lambda: rounds(home) > kept, "the next window goes on with the same history")
    again.send_signal(signal.SIGTERM)
    assert again.wait(PATIENCE_S) == 0


def test_idle_time_starts_and_input_ends_the_trainer(display: str, home: Path) -> None:
    settings = home / "settings.json"
    chosen = {**json.loads(settings.read_text()), "contribute_when_idle": True, "idle_s": 8}
    settings.write_text(json.dumps(chosen))
    move(display, 500)
    running = start(display, home)
    try:
        wait(lambda: node(running.pid), "the node is there")
        assert trainer(running.pid) is None, "somebody has just moved the pointer"
        wait(lambda: trainer(running.pid), "nobody has for eight seconds")
        wait(lambda: rounds(home) >= 1, "it learns")
        for x in (600, 700):
            moved = time.monotonic()
            move(display, x)
            wait(lambda: trainer(running.pid) is None, "it gives way")
            gone = time.monotonic() - moved
            wait(lambda: scorer(running.pid) is None, "the scoring child too")
            print(f"The scoring child was gone after {time.monotonic() - moved:.1f} s.")
            wait(lambda: trainer(running.pid), "and comes back")
            back = time.monotonic() - moved - 8
            print(f"Gone {gone:.1f} s after the pointer had moved, back {back:.1f} s after 8 s without input.")
            wait(lambda: scorer(running.pid), "it learns again")
    finally:
        end(running)


@pytest.mark.skipif(not shutil.which("trayer"), reason="trayer is needed (package trayer)")
def test_a_click_in_a_real_tray_toggles_contributing(display: str, home: Path) -> None:
    environment = {**os.environ, "DISPLAY": display, "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}
    options = ["--edge", "bottom", "--align", "right", "--widthtype", "request", "--height", "28"]
    tray = subprocess.Popen(["trayer", *options], env=environment, stderr=subprocess.DEVNULL)
    time.sleep(1)
    running = start(display, home, "--background", DBUS_SESSION_BUS_ADDRESS="unix:path=/nowhere")
    try:
        wait(lambda: trainer(running.pid), "it learns without a window")
        orders = home / "orders.json"

        def toggle(paused: bool) -> None:
            def tried() -> bool:
                menu(display, "Down", "Down", "Return")  # Open Shoal, Learn while I'm away
                time.sleep(3)
                return orders.exists() and json.loads(orders.read_text())["paused"] is paused

            wait(tried, f"the entry is clicked: paused {paused}")

        toggle(paused=True)
        wait(lambda: trainer(running.pid) is None, "it stops contributing")
        toggle(paused=False)
        wait(lambda: trainer(running.pid), "it contributes again")
    finally:
        end(running)
        tray.terminate()
        tray.wait()


ACCESS = """
import sys, time
import pyatspi

def found(node, name, depth=0):
    if node is None or depth > 25:
        return None
    try:
        if node.name == name and node.getRoleName() in ("check box", "push button", "toggle button"):
            return node
        children = [node.getChildAtIndex(at) for at in range(node.childCount)]
    except Exception:
        return None
    return next(filter(None, (found(child, name, depth + 1) for child in children)), None)

for _ in range(60):
    desktop = pyatspi.Registry.getDesktop(0)
    switch = next(filter(None, (found(desktop.getChildAtIndex(at), "Learn while I'm away")
                                for at in range(desktop.childCount))), None)
    if switch and switch.getState().contains(pyatspi.STATE_CHECKED):
        break
    time.sleep(1)
before = switch.getState().contains(pyatspi.STATE_CHECKED)
switch.queryAction().doAction([switch.queryAction().getName(at) for at in range(switch.queryAction().nActions)]
                              .index("Toggle"))
for _ in range(60):
    if switch.getState().contains(pyatspi.STATE_CHECKED) != before:
        break
    time.sleep(0.5)
print(before, switch.getState().contains(pyatspi.STATE_CHECKED))
"""


def test_assistive_technology_finds_and_presses_the_switch(display: str, home: Path) -> None:
    python = Path("/usr/bin/python3")
    known = (
        python.exists()
        and subprocess.run([python, "-c", "import pyatspi"], capture_output=True).returncode == 0
    )
    if not known or not shutil.which("dbus-run-session"):
        pytest.skip("python3-pyatspi, at-spi2-core and dbus are needed")
    script = f"""
        /usr/libexec/at-spi-bus-launcher --launch-immediately & launcher=$!
        sleep 1
        "{sys.executable}" -m app.cli window --home "{home}" & window=$!
        {python} -c "$ACCESS"
        for _ in $(seq 120); do [ -e "{home}/orders.json" ] && break; sleep 0.5; done
        kill $window; wait $window; kill $launcher
    """
    environment = {name: value for name, value in os.environ.items() if name != "QT_QPA_PLATFORM"}
    done = subprocess.run(
        ["dbus-run-session", "--", "bash", "-c", script],
        cwd=ROOT,
        env={**environment, "DISPLAY": display, "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1", "ACCESS": ACCESS},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.stdout.splitlines()[-1] == "True False", done.stderr
    assert json.loads((home / "orders.json").read_text())["paused"] is True


def test_two_windows_learn_from_each_other_over_a_relay(display: str, tmp_path: Path) -> None:
    from app.node.history import history

    relay = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "relay", "--port", "0", "--state", str(tmp_path / "relay")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert relay.stdout is not None
    url = json.loads(relay.stdout.readline())["url"]
    homes = [tmp_path / "one", tmp_path / "two"]
    running = []
    for home in homes:
        home.mkdir()
        prepare(home)
        running.append(
            start(display, home, "--join", url, PYTHON_KEYRING_BACKEND="keyring.backends.null.Keyring")
        )
    try:
        taken = lambda home: sum(row.taken for row in history.read(history.newest(home)).rounds)  # noqa: E731
        wait(lambda: all(taken(home) for home in homes), "both learned from the other")
    finally:
        for one in running:
            end(one)
        relay.terminate()
        relay.wait()
