"""The engine of an installed app in the window: what the first run shows, what is asked of it, and what happens
when an engine is gone. The processes are made up here; tests/ui/screen/test_real_engine.py has real ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app.install.packs import place
from app.install.packs.place import PackStatus
from app.ui.frame.frame import Actions
from app.ui.overview.page import Overview
from app.ui.privacy.page import shared_summary
from app.ui.process.control import Control
from app.ui.process.engine import EngineControl
from app.ui.process.node import NodeProcess
from app.ui.settings.page import SettingsPage
from app.ui.view.settings import Choices
from app.ui.view.view import NodeStatus, Problem, View, missing_engine_sentence
from tests.ui import engine_views, views
from tests.ui.drawing import shown, texts


class Told(QObject):
    """A child process that tells what the test wants."""

    line = Signal(bytes)
    ended = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []
        self.running = False

    def start(self, arguments: Sequence[str], log: Path | None = None) -> None:
        self.asked.append(list(arguments))
        self.running = True

    def end(self, wait: bool = False) -> None:
        self.running = False

    def says(self, *lines: bytes, code: int = 0) -> None:
        for line in lines:
            self.line.emit(line)
        self.running = False
        self.ended.emit(code)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[bool]:
    """Whether there is one, to be changed."""
    there = [False]
    monkeypatch.setattr(place, "python", lambda: Path("python") if there[0] else None)
    monkeypatch.setenv("SHOAL_PACKS", str(tmp_path / "packs"))
    return there


@pytest.fixture
def packing(qtbot: QtBot, engine: list[bool], tmp_path: Path) -> tuple[EngineControl, Told, Told, Told]:
    made = [Told(), Told(), Told()]
    waiting = list(made)
    return EngineControl(tmp_path, lambda: waiting.pop(0)), *made  # type: ignore[arg-type, return-value]


def test_who_learns_without_an_engine_is_offered_it(opened: Callable[..., Any], asked: list[object]) -> None:
    first = engine_views.first()
    one = opened(Overview, View(pack=first["new"]))
    shown(one)["Learn alone"].click()
    assert asked == [("learn", "alone")]
    one.show_view(engine_views.lacking(first["new"]))
    assert "296.9 MB" in texts(one) and "58.3 GB free" in texts(one)
    shown(one)["Install the engine"].click()
    one.show_view(engine_views.lacking(first["fetching"]))
    assert "29 %" in texts(one)
    assert "Downloading: 112.0 MB of 296.9 MB, 12.4 MB a second, about 15 s left" in texts(one)
    shown(one)["Cancel"].click()
    one.show_view(engine_views.lacking(first["begun"]))
    assert "Resume installation" in shown(one) and "112.0 MB already here" in texts(one)
    one.show_view(engine_views.lacking(first["carried"]))
    shown(one)["Install the engine"].click()
    assert asked[1:] == [("install", "cpu", ""), "cancel", ("install", "cpu", "/opt/shoal/packs")]


def test_a_checkout_knows_nothing_of_it(opened: Callable[..., Any], asked: list[object]) -> None:
    one = opened(Overview)
    one.show_view(View())
    assert "engine" not in texts(one).casefold()
    shown(one)["Learn alone"].click()
    assert asked == [("learn", "alone")]
    settings = opened(SettingsPage, View())
    assert settings._engine.isHidden()


@pytest.mark.parametrize("trouble", engine_views.TROUBLES)
def test_every_failure_has_its_sentence_and_a_way_on(
    opened: Callable[..., Any],
    asked: list[object],
    trouble: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SHOAL_PACKS", raising=False)
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "/media/stick")
    one = opened(Overview, engine_views.lacking(engine_views.first()[trouble]))
    said = texts(one)
    assert engine_views.TROUBLES[trouble] in said
    for name in ("Retry", "From a folder …"):
        shown(one)[name].click()
    assert asked == ["retry", ("install", "", "/media/stick")]


def test_an_engine_that_is_gone_or_broken_is_told_in_the_place_of_learning(
    opened: Callable[..., Any], asked: list[object]
) -> None:
    one, later = opened(Overview), engine_views.later()
    one.show_view(msgspec.structs.replace(views.failed(), pack=later["gone"]))
    assert "The engine is missing" in texts(one) and "Try again" not in shown(one)
    shown(one)["Reinstall the engine"].click()
    one.show_view(msgspec.structs.replace(views.failed(), pack=later["broken"]))
    assert "doesn't work any more" in texts(one)
    shown(one)["Repair"].click()
    assert asked == [("install", "cpu", ""), "repair"]
    one.show_view(msgspec.structs.replace(views.failed(), pack=later["whole"]))
    assert "Try again" in shown(one), "another problem is shown as ever"


def test_what_leaves_this_computer_is_told_also_now() -> None:
    fetching = engine_views.first()["fetching"]
    assert "engine" in shared_summary(View(pack=fetching))[0]
    assert fetching.doing is not None
    offline = msgspec.structs.replace(fetching, doing=msgspec.structs.replace(fetching.doing, offline=True))
    assert shared_summary(View(pack=offline))[0] == "Nothing"


def test_other_processes_that_need_it_say_so(monkeypatch: pytest.MonkeyPatch, engine: list[bool]) -> None:
    assert missing_engine_sentence() == "", "a checkout has its own"
    monkeypatch.setattr(place, "installed", lambda: True)
    assert "Overview" in missing_engine_sentence()
    engine[0] = True
    assert missing_engine_sentence() == ""


def test_a_newer_engine_is_offered_once(
    opened: Callable[..., Any], actions: Actions, asked: list[object]
) -> None:
    one, later = opened(Overview), engine_views.later()
    view = msgspec.structs.replace(views.learning(), pack=later["newer"])
    one.show_view(view)
    assert "A newer engine is available: 0.2.0" in texts(one) and "296.9 MB" in texts(one)
    shown(one)["Install the engine"].click()
    shown(one)["Not now"].click()
    assert asked == [("install", "cpu", "")] and actions.choices.memory.engine_not_now == "0.2.0"
    one.show_view(view)
    assert "newer engine" not in texts(one)


def test_settings_say_what_is_installed(opened: Callable[..., Any], asked: list[object]) -> None:
    made = opened(SettingsPage, msgspec.structs.replace(views.learning(), pack=engine_views.later()["whole"]))
    said = texts(made._engine)
    assert "0.1.0  ·  Python 3.11  ·  1.1 GB" in said
    buttons = shown(made._engine)
    for name in ("Repair", "Install the engine"):
        buttons[name].click()
    assert asked == ["repair", ("install", "cuda", "")]
    made._find.setText("repair")
    assert not made._engine.isHidden()
    made._find.setText("colours")
    assert made._engine.isHidden()


def test_progress_waiting_and_failure_come_from_the_process(
    packing: tuple[EngineControl, Told, Told, Told], engine: list[bool]
) -> None:
    one, reader, doer, _ = packing
    one.refresh()
    assert reader.asked == [["pack", "list", "--json"]]
    standing = PackStatus(folder="/packs", packs=[], offers=[engine_views.CPU])
    reader.says(msgspec.json.encode(standing))
    one.install("cpu", "")
    one.install("cpu", "")
    assert doer.asked == [["pack", "install", "cpu", "--json", "--attached"]], "and once"
    doer.line.emit(
        b'{"event":"progress","stage":"fetch","percent":12,"have":30,"total":240,"sentence":"Fetching torch."}'
    )
    assert one.state.doing is not None and (one.state.doing.percent, one.state.doing.have) == (12, 30)
    doer.line.emit(b'{"event":"waiting","sentence":"The connection broke off.","seconds":2.0}')
    assert one.state.doing.note == "The connection broke off."
    doer.line.emit(b'{"event":"of another version"}\n')
    doer.says(b'{"event":"failed","sentence":"No room: make some."}', code=1)
    assert one.state.doing is None and one.state.failed == "No room: make some."
    ready: list[bool] = []
    one.ready.connect(lambda: ready.append(True))
    one.retry()
    engine[0] = True
    doer.says(b'{"event":"done","pack":"cpu-0.2.0","python":"/p","sentence":"It is in use."}')
    assert len(doer.asked) == 2 and one.state.usable and not one.state.failed and ready == [True]
    one.retry()
    assert len(doer.asked) == 2, "what succeeded is not done again"


def test_a_process_that_dies_and_one_that_is_cancelled(packing: tuple[EngineControl, Told, Told, Told]) -> None:
    one, reader, doer, _ = packing
    one.install("", "/stick")
    doer.says(code=-1)
    assert "try again" in one.state.failed and one.state.failed_offline
    assert doer.asked == [["pack", "install", "--offline", "/stick", "--json", "--attached"]]
    one.install("cpu", "")
    one.cancel()
    assert not doer.running and one.state.doing is None and one.state.failed == "" and reader.asked


def test_a_failure_of_learning_is_looked_into(
    packing: tuple[EngineControl, Told, Told, Told], engine: list[bool]
) -> None:
    one, _, doer, checker = packing
    engine[0] = True
    one.check()
    assert checker.asked == [["pack", "check", "--json"]]
    checker.says(b'{"event":"failed","sentence":"It does not load (no torch): repair it."}', code=1)
    assert one.state.broken and not one.state.usable
    one.install("", "/stick")
    assert doer.asked[-1] == ["pack", "repair", "--offline", "/stick", "--json", "--attached"]
    doer.says(b'{"event":"done","pack":"cpu-0.2.0-r1","python":"/p","sentence":"It is in use."}')
    assert one.state.usable
    engine[0] = False
    obstacle = one.obstacle()
    assert obstacle is not None and "engine" in obstacle.title and not one.state.there


def test_no_node_is_started_without_an_engine(qtbot: QtBot, tmp_path: Path) -> None:
    started: list[object] = []

    class Silent(NodeProcess):
        def _launch(self) -> None:
            started.append(self._options)

    problem = [Problem(title="No engine", sentence="There is none.", remedy="Install it.")]
    choices = Choices(tmp_path)
    choices.remember_window(asked=True)
    link = Silent(tmp_path)
    control = Control(tmp_path, choices, link, obstacle=lambda: problem[0] if problem else None)
    control.open()
    assert control.view.state is NodeStatus.FAILED and control.view.problem == problem[0] and not started
    problem.clear()
    control.engine_changed()
    assert control.view.state is NodeStatus.STARTING and len(started) == 1
    control.engine_changed()
    assert len(started) == 2, "what runs is started anew with the other engine"
    control.close()
