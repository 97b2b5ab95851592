"""The engine of an installed app, for real: a stand-in of the program (tests/ui/screen/installed.py), its own
child processes, and packs from a host here."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.ui.process.engine import EngineControl
from app.ui.process.job import Job
from tests.packs.wheels import KEYS, Host, plain, serving, wheel, with_uv, write_out
from tests.ui.screen.installed import stand_in, trusting

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script"),
]


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
