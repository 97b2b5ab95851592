"""`./shoal` alone: the window where one can be shown, else the terminal view and a sentence."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from rich.console import Console

from app.cli import __main__ as cli
from app.install.launcher import system
from app.node.record.snapshot import Snapshot
from app.node.terminal.terminal import Terminal, draw_view
from app.ui.shell import display

ROOT = Path(__file__).parents[2]
PATIENCE_S = 240

pytestmark = pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="there is always a display here")


def bare(**variables: str) -> dict[str, str]:
    """An environment without any display."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    kept.pop("QT_QPA_PLATFORM", None)
    return {**kept, **variables}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What `./shoal` turned into."""
    seen: list[tuple[str, ...]] = []
    monkeypatch.setattr(cli, "_run", lambda *arguments: seen.append(arguments) or 0)
    return seen


@pytest.fixture
def screen() -> Iterator[str]:
    xvfb = shutil.which("Xvfb")
    if not xvfb:
        pytest.skip("Xvfb is needed (package xvfb)")
    read, write = os.pipe()
    server = subprocess.Popen(
        [xvfb, "-displayfd", str(write), "-screen", "0", "800x600x24"],
        pass_fds=[write],
        stderr=subprocess.DEVNULL,
    )
    os.close(write)
    with os.fdopen(read) as pipe:
        number = pipe.readline().strip()
    yield f":{number}"
    server.terminate()
    server.wait()


def test_a_display_gets_the_window(
    screen: str, opened: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(
        "PySide6.QtWidgets", reason="Qt's system libraries are missing here", exc_type=ImportError
    )
    monkeypatch.delenv("QT_QPA_PLATFORM", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", screen)
    assert cli.main([]) == cli.main(["--home", "D"]) == cli.main(["--home=D"]) == 0
    assert opened == [("window",), ("window", "--home", "D"), ("window", "--home", "D")]


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({}, "there is no display here"),
        ({"DISPLAY": ":4711"}, "the display :4711 does not answer"),
        ({"DISPLAY": ":4711", "QT_QPA_PLATFORM": "xcb"}, "the display :4711 does not answer"),
        ({"WAYLAND_DISPLAY": "nobody", "XDG_RUNTIME_DIR": "/nowhere"}, "the display nobody does not answer"),
        ({"DISPLAY": ":0", "QT_QPA_PLATFORM": "offscreen"}, "draws where nobody can look"),
    ],
)
def test_otherwise_the_terminal_view_says_why(
    variables: dict[str, str],
    why: str,
    opened: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(system, "provide_window", lambda *_, **__: ())
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cli.main([]) == 0
    assert opened == [("run", "--solo")]
    said = capsys.readouterr().err
    assert why in said and said.count("\n") == 1 and "Shoal learns without one" in said


def test_the_view_that_covers_the_sentence_repeats_it(
    opened: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    cli.main([])
    assert "; the view in this terminal opens." in " ".join(capsys.readouterr().err.split())
    said = "No window can be shown, because there is no display here; the view in this terminal opens."
    assert opened == [("run", "--solo", "--said", said)]
    snapshot = Snapshot(model="m", recipe="default", home="/h", solo=True, started_at=time.time())
    console = Console(file=io.StringIO(), width=100, height=24, force_terminal=True)
    for note, shown in (("", said), ("Something newer.", "Something newer.")):
        current = msgspec.structs.replace(snapshot, note=note, noted_at=time.time())
        view = Terminal(console, lambda current=current: current, said)
        console.print(draw_view(view._read(), 100, 24, time.time()))
        assert shown in console.file.getvalue()  # type: ignore[attr-defined]


def test_options_alone_go_to_the_node(opened: list[tuple[str, ...]]) -> None:
    cli.main(["--rounds", "3"])
    cli.main(["--home", "D"])
    assert opened == [("run", "--solo", "--rounds", "3"), ("run", "--solo", "--home", "D")]


def test_a_wayland_display_that_answers_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "wayland-7"))
        listener.listen()
        with monkeypatch.context() as context:
            context.setattr(display, "PATIENCE_S", 0.2)
            assert not display.choose_display({"WAYLAND_DISPLAY": str(tmp_path / "wayland-7")}), (
                "it takes us, silently"
            )
        listener.accept()[0].close()

        def compositor() -> None:
            for _ in range(2):
                client, _ = listener.accept()
                with client:
                    assert client.recv(12) == display.SYNC
                    client.sendall(bytes(12))

        threading.Thread(target=compositor, daemon=True).start()
        assert display.choose_display({"WAYLAND_DISPLAY": "wayland-7", "XDG_RUNTIME_DIR": str(tmp_path)})
        assert display.choose_display({"WAYLAND_DISPLAY": str(tmp_path / "wayland-7")})


def test_a_dead_display_is_a_sentence_and_no_crash() -> None:
    pytest.importorskip(
        "PySide6.QtWidgets", reason="Qt's system libraries are missing here", exc_type=ImportError
    )
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "window"],
        cwd=ROOT,
        env=bare(DISPLAY=":4711"),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    said = done.stderr.splitlines()[-1]  # before it, what was installed for the window
    assert said.startswith("shoal window: ") and "does not answer" in said and "./shoal run" in said


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[str]:
    """A Wayland display that takes connections and never answers."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "wayland-0"))
        listener.listen(16)
        yield str(tmp_path / "wayland-0")


def test_the_real_window_opens_beside_a_silent_wayland(screen: str, tmp_path: Path, silent: str) -> None:
    """No command, a real X server: the window is there, and no node runs before anybody asked for one."""
    xwininfo = shutil.which("xdotool")
    if not xwininfo:
        pytest.skip("xdotool is needed")
    wayland = {"WAYLAND_DISPLAY": silent, "XDG_SESSION_TYPE": "wayland"}
    environment = bare(DISPLAY=screen, SHOAL_HOME=str(tmp_path / "home")) | wayland
    running = subprocess.Popen([sys.executable, "-m", "app.cli"], cwd=ROOT, env=environment)
    try:
        until, found = time.monotonic() + PATIENCE_S, ""
        while not found and running.poll() is None and time.monotonic() < until:
            found = subprocess.run(
                [xwininfo, "search", "--onlyvisible", "--name", "^Shoal$"],
                env=environment,
                capture_output=True,
                text=True,
            ).stdout.strip()
            time.sleep(0.3)
        assert found, running.returncode
        assert not [one for one in psutil.Process(running.pid).children() if "run" in one.cmdline()]
        running.terminate()
        assert running.wait(PATIENCE_S) == 0
    finally:
        with contextlib.suppress(OSError):
            running.kill()
        running.wait()
