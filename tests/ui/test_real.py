"""The real window on a real X server with the real node: started, looked at, paused, killed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from app.bench.window import prepare

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
    with os.fdopen(read) as pipe:
        number = pipe.readline().strip()  # to its end: a server that cannot write it all dies of that
    yield f":{number}"
    server.terminate()
    server.wait()


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
    from app.ui import past

    return len(past.read(past.newest(home)).rounds)


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
    return named(pid, "app.node.trainer")


def test_it_learns_pauses_and_goes_with_its_window(
    window: subprocess.Popen[bytes], display: str, home: Path
) -> None:
    from app.ui import past

    wait(lambda: past.read(past.newest(home)).curve, "the curve has its first point")
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


@pytest.mark.parametrize(
    "victims",
    [("trainer",), ("node",), ("trainer", "node"), ("window", "trainer"), ("window", "node", "trainer")],
)
def test_killed_in_any_combination_it_goes_on_with_its_history(
    window: subprocess.Popen[bytes], display: str, home: Path, victims: tuple[str, ...]
) -> None:
    wait(lambda: rounds(home) >= 2 and trainer(window.pid), "rounds are done")
    everything = family(window.pid)
    found = {"window": psutil.Process(window.pid), "node": node(window.pid), "trainer": trainer(window.pid)}
    for victim in victims:
        process = found[victim]
        assert process is not None
        process.kill()
    kept = rounds(home)
    running = window
    if "window" in victims:
        window.wait()
        _, alive = psutil.wait_procs(everything, timeout=PATIENCE_S)
        assert not alive, "nothing is left running"
        running = start(display, home)
    try:
        wait(lambda: rounds(home) > kept, "it goes on after what it knew")
    finally:
        end(running)


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
        moved = time.monotonic()
        move(display, 600)
        wait(lambda: trainer(running.pid) is None, "it gives way")
        print(f"The trainer was gone {time.monotonic() - moved:.1f} s after the pointer had moved.")
        wait(lambda: trainer(running.pid), "and comes back")
    finally:
        end(running)


def move(display: str, x: int) -> None:
    environment = {**os.environ, "DISPLAY": display}
    subprocess.run(["xdotool", "mousemove", str(x), "450"], env=environment, check=True, timeout=30)


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
                menu(display, "Down", "Down", "Return")  # Open Shoal, Contribute when idle
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


def menu(display: str, *keys: str) -> None:
    """The context menu of the only icon in the tray at the bottom right, by its keys."""
    environment = {**os.environ, "DISPLAY": display}
    for command in (
        ["mousemove", "1268", "886"],
        ["click", "3"],
        ["sleep", "1"],
        *(["key", key] for key in keys),
    ):
        subprocess.run(["xdotool", *command], env=environment, check=True, timeout=30)


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
    switch = next(filter(None, (found(desktop.getChildAtIndex(at), "Contribute when idle")
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
    from app.ui import past

    relay = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "relay", "--host", "127.0.0.1", "--port", "0"],
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
        running.append(start(display, home, "--join", url, SHOAL_PASSPHRASE="for the test"))
    try:
        taken = lambda home: sum(row.informative_peer for row in past.read(past.newest(home)).rounds)  # noqa: E731
        wait(lambda: all(taken(home) for home in homes), "both learned from the other")
    finally:
        for one in running:
            end(one)
        relay.terminate()
        relay.wait()


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
