"""What tests that draw share: a theme, a window, what its pages ask for."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.node.rules.preferences import check
from app.ui.frame.frame import Actions
from app.ui.shell.window import MainWindow
from app.ui.theme import Theme
from app.ui.view.settings import Choices


@pytest.fixture(scope="session")
def light(qapp: QApplication) -> Theme:
    """One for all tests: a style sheet that is set anew polishes every widget again."""
    return Theme(qapp, "light")


@pytest.fixture(scope="module", autouse=True)
def windows_end_with_their_file(qapp: QApplication) -> Iterator[None]:
    """A style sheet polishes every widget alive: with windows left over, a change of theme took 70 s."""
    before = set(qapp.topLevelWidgets())
    yield
    for widget in set(qapp.topLevelWidgets()) - before:
        if widget.parent() is None and not widget.property("shared"):
            widget.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def asked() -> list[object]:
    """What pages asked for, in order."""
    return []


@pytest.fixture
def actions(tmp_path: Path, asked: list[object]) -> Actions:
    choices = Choices(tmp_path)

    def put(key: str, value: object) -> None:
        asked.append((key, value))
        choices.put(key, value)

    def rule(key: str, value: object) -> None:
        check(key, value)
        asked.append((key, value))

    return Actions(
        start=lambda: asked.append("start"),
        insist=lambda: asked.append("insist"),
        contribute=lambda on: asked.append(("contribute", on)),
        show_round=lambda round: asked.append(("round", round)),
        reopen=lambda: asked.append("reopen"),
        join_private=lambda words: asked.append(("private", words)),
        want_questions=lambda places: asked.append(("questions", *places)),
        show_family=lambda name: asked.append(("family", name)),
        show_rule=lambda key: asked.append(("rule", key)),
        show_help=lambda key: asked.append(("help", key)),
        pause=lambda: asked.append("pause"),
        skip=lambda: asked.append("skip"),
        snooze=lambda seconds: asked.append(("snooze", seconds)),
        finish=lambda: asked.append("finish"),
        set_rule=rule,
        starts_at_login=lambda: False,
        go=asked.append,
        set_choice=put,
        alone=lambda: asked.append("alone"),
        move_data=lambda to: asked.append(("move", to)),
        remove_all=lambda: asked.append("remove"),
        learn=lambda company: asked.append(("learn", company)),
        join=lambda invite: asked.append(("join", invite)),
        choices=choices,
    )


@pytest.fixture(scope="session")
def one_window(light: Theme, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MainWindow]:
    choices = Choices(tmp_path_factory.mktemp("home"))
    made = MainWindow(
        light,
        Actions(
            start=_nothing,
            insist=_nothing,
            contribute=_nothing,
            show_round=_nothing,
            reopen=_nothing,
            join_private=_nothing,
            want_questions=_nothing,
            show_rule=_nothing,
            show_help=_nothing,
            show_family=_nothing,
            pause=_nothing,
            snooze=_nothing,
            finish=_nothing,
            set_rule=_nothing,
            starts_at_login=_no,
            learn=_nothing,
            alone=_nothing,
            move_data=_nothing,
            remove_all=_nothing,
            join=_nothing,
            go=_nothing,
            set_choice=_nothing,
            choices=choices,
        ),
    )
    made.setProperty("shared", True)
    made.show()
    yield made
    made.close()


def _nothing(*_: object) -> None:
    pass


def _no() -> bool:
    return False


@pytest.fixture
def window(qtbot: QtBot, one_window: MainWindow) -> MainWindow:
    """A window in its first size, with whatever pages earlier tests have opened."""
    one_window.resize(1180, 780)
    one_window.go("overview")
    return one_window


@pytest.fixture
def xvfb() -> str:
    if sys.platform != "linux" or not shutil.which("Xvfb") or not shutil.which("xdotool"):
        pytest.skip("Xvfb and xdotool are needed (packages xvfb, xdotool)")
    return str(shutil.which("Xvfb"))
