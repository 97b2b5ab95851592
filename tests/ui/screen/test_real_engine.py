"""An installed app without an engine, for real: a stand-in of the program (tests/ui/screen/installed.py), its
own child processes, packs from a host here, and the window on a screen. With SHOAL_TEST_PACK, a folder with a
real offline pack, and SHOAL_TEST_PACK_KEY, the file with its public key, it goes on until it learns."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.bench.runs.window import prepare
from app.install.packs.place import MARK
from app.ui.process.engine import EngineControl
from app.ui.process.job import Job
from tests.packs.wheels import KEYS, Host, plain, serving, wheel, with_uv, write_out
from tests.ui.screen import real as driving
from tests.ui.screen.installed import stand_in, trusting
from tests.ui.screen.real import PRESS, ROOT, end, named, picture, rounds, screen, wait

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script"),
]
PYTHON = Path("/usr/bin/python3")
"""Assistive technology, which presses the buttons, is a library of the system's."""


@pytest.fixture
def bus() -> Iterator[dict[str, str]]:
    """A session bus with the accessibility bus behind it, as environment variables."""
    known = (
        PYTHON.exists()
        and subprocess.run([PYTHON, "-c", "import pyatspi"], capture_output=True).returncode == 0
    )
    launcher = Path("/usr/libexec/at-spi-bus-launcher")
    if not known or not launcher.exists() or not shutil.which("dbus-daemon") or not shutil.which("openbox"):
        pytest.skip("python3-pyatspi, at-spi2-core, dbus and openbox are needed")
    daemon = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert daemon.stdout is not None
    address = daemon.stdout.readline().strip()
    variables = {"DBUS_SESSION_BUS_ADDRESS": address, "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1"}
    access = subprocess.Popen(
        [launcher, "--launch-immediately"], env={**os.environ, **variables}, stderr=subprocess.DEVNULL
    )
    yield variables
    for process in (access, daemon):
        process.terminate()
        process.wait()


def push(display: str, bus: dict[str, str], name: str) -> None:
    """Presses a button as a screen reader does."""
    done = subprocess.run(
        [PYTHON, "-c", PRESS, name],
        env={**os.environ, **bus, "DISPLAY": display},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr


class OnDisk(dict[str, bytes]):
    """The files of a folder, read when they are asked for: a pack is larger than what one keeps in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __contains__(self, name: object) -> bool:
        return (self._folder / str(name)).is_file()

    def __getitem__(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()


class App:
    """A stand-in, its packs, and the window's own dealings with them."""

    def __init__(self, folder: Path, trust: dict[str, Any] | None) -> None:
        self.program = stand_in(folder / "Müllers Programme" / "shoal", trust)
        self.packs = folder / "Ein Ordner" / "packs"
        self.home = folder / "home"

    def packing(self) -> EngineControl:
        return EngineControl(self.home, lambda: Job(program=str(self.program)))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[App, Host]]:
    """An app whose pack is two small wheels on a host here."""
    files = with_uv(dict([wheel("shoal_small"), wheel("shoal_large", fill=3_000_000)]))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with serving(Host(files)) as host:
        url = host.offer(plain(files))
        stick = write_out(files, tmp_path / "stick")
        app = App(tmp_path, trusting(KEYS[0], url, stick / "cpu.json"))
        monkeypatch.setenv("SHOAL_PACKS", str(app.packs))
        yield app, host


def until(qtbot: QtBot, true: Callable[[], object], seconds: float = 120.0) -> None:
    qtbot.waitUntil(lambda: bool(true()), timeout=int(1000 * seconds))


def test_cut_cancelled_and_gone_on_with(qtbot: QtBot, small: tuple[App, Host]) -> None:
    app, host = small
    large = "shoal_large-1.0-py3-none-any.whl"
    host.cut[large], host.slow_s = [1_000_000], 0.01
    one = app.packing()
    one.refresh()
    until(qtbot, lambda: one.state.offers)
    assert one.state.offers[0].bytes > 3_000_000 and not one.state.there
    one.install("cpu", "")
    until(qtbot, lambda: one.state.doing is not None and one.state.doing.note)
    one.cancel()
    until(qtbot, lambda: one.state.offers[0].have >= 1_000_000)
    host.slow_s = 0.0
    one.install("cpu", "")
    until(qtbot, lambda: one.state.there and one.state.current)
    assert any(name == large and wanted.startswith("bytes=") for name, wanted in host.asked)
    assert one.state.current is not None
    assert one.state.current.python and not one.state.failed
    one.check()
    until(qtbot, lambda: not one._checker.running)
    assert one.state.usable
    (module,) = app.packs.rglob("shoal_small/__init__.py")
    shutil.rmtree(module.parent)
    one.check()
    until(qtbot, lambda: one.state.broken)
    one.repair()
    until(qtbot, lambda: one.state.usable)
    one.remove()
    until(qtbot, lambda: not one.state.there and one.state.standing is not None and not one.state.current)
    one.close()


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[App, Host]]:
    """An app whose pack is a real one, on a host here."""
    monkeypatch.setattr(driving, "PATIENCE_S", 600)  # a gigabyte is unpacked, on a computer that others use too
    folder, key = os.environ.get("SHOAL_TEST_PACK", ""), os.environ.get("SHOAL_TEST_PACK_KEY", "")
    if not folder or not key:
        pytest.skip(
            "SHOAL_TEST_PACK and SHOAL_TEST_PACK_KEY name no real pack (packaging/packs/make pack --carry)"
        )
    with serving(Host(OnDisk(Path(folder)))) as host:
        trust = trusting(Path(key).read_text().strip(), f"{host.url}/cpu.json", Path(folder) / "cpu.json")
        app = App(tmp_path, trust)
        yield app, host
        for left in (app.packs, tmp_path / "gone"):  # a gigabyte each
            shutil.rmtree(left, ignore_errors=True)


def opened(app: App, display: str, variables: dict[str, str]) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if name != "QT_QPA_PLATFORM"}
    environment |= variables | {"DISPLAY": display, "SHOAL_PACKS": str(app.packs), "SHOAL_HOME": str(app.home)}
    return subprocess.Popen([app.program, "window"], cwd=ROOT, env=environment)


def test_from_no_engine_to_learning(
    xvfb: str, bus: dict[str, str], real: tuple[App, Host], tmp_path: Path
) -> None:
    app, host = real
    app.home.mkdir()
    prepare(app.home)  # this computer is shared with other tests: no rule may hold it back
    (app.home / "window-state.json").unlink()
    torch = next(path.name for path in Path(os.environ["SHOAL_TEST_PACK"]).glob("torch-*.whl"))
    host.cut[torch] = [60_000_000, 20_000_000]
    with screen(xvfb) as display:
        running = opened(app, display, bus)
        try:
            push(display, bus, "Learn alone")
            picture(display, "engine-1-step")
            push(display, bus, "Install the engine")
            wait(lambda: (torch, "") in host.asked, "it fetches")
            time.sleep(1)
            picture(display, "engine-2-fetching")
            push(display, bus, "Cancel")
            wait(lambda: named(running.pid, "pack") is None, "and stops")
            host.status = [(503, {})] * 6
            push(display, bus, "Resume installation")
            wait(lambda: not host.status, "it tries often enough by itself")
            time.sleep(3)
            picture(display, "engine-3-retry")
            push(display, bus, "Retry")
            wait(
                lambda: any(name == torch and wanted for name, wanted in host.asked), "it goes on where it was"
            )
            wait(lambda: (app.packs / "current.json").exists(), "the engine is there")
            wait(lambda: app.home.exists() and rounds(app.home) >= 1, "and it learns")
            picture(display, "engine-4-learning")

            worker = named(running.pid, "app.node.trainer.process")
            assert worker is not None and str(app.packs) in worker.cmdline()[0], "with the pack's Python"
            for pack in app.packs.glob("cpu-*"):
                if pack.is_dir():
                    pack.rename(tmp_path / "gone")
            worker.kill()
            push(display, bus, "Reinstall the engine")
            picture(display, "engine-5-gone")
            assert named(running.pid, "app.node.trainer.process") is None, "no trainer is tried again and again"
            before = rounds(app.home)
            wait(lambda: list(app.packs.glob(f".work/*/wheels/{torch}")), "it is fetched")
            wait(lambda: list(app.packs.glob(f"cpu-*/{MARK}")), "and made")
            wait(lambda: rounds(app.home) > before, "and it goes on with the engine that came anew")
            picture(display, "engine-6-again")
        finally:
            end(running)
