"""What tests that draw share: a theme, a window, what its pages ask for."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QLocale, QMimeData, QPoint, QPointF, Qt, QTranslator, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.ui.frame.frame import Actions
from app.ui.language import translating
from app.ui.shell.desktop import Desktop
from app.ui.shell.window import MainWindow
from app.ui.theme import Theme
from app.ui.view.view import View
from tests.ui import pictures


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
    return pictures.actions(tmp_path, asked)


@pytest.fixture
def opened(qtbot: QtBot, light: Theme, actions: Actions) -> Callable[..., Any]:
    """Opens a page (or another widget of a theme and actions) in sight, in the size of a small window."""

    def made(kind: Callable[..., Any], view: View | None = None, **changed: object) -> Any:
        page = kind(light, replace(actions, **changed))
        qtbot.addWidget(page)
        page.resize(968, 780)
        page.show()
        qtbot.waitExposed(page)
        if view is not None:
            page.show_view(view)
        QApplication.processEvents()
        return page

    return made


def texts(widget: QWidget) -> str:
    """Every text in sight, a line each."""
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisibleTo(widget))


def shown(widget: QWidget) -> dict[str, QAbstractButton]:
    """Every button in sight, by its accessible name or its text."""
    buttons = [one for one in widget.findChildren(QAbstractButton) if one.isVisibleTo(widget)]
    return {one.accessibleName() or one.text(): one for one in buttons}


def press(qtbot: QtBot, widget: QWidget, name: str) -> None:
    QApplication.processEvents()
    qtbot.mouseClick(shown(widget)[name], Qt.MouseButton.LeftButton)


def dropped(window: QWidget, paths: list[Path]) -> bool:
    """Whether the window takes these; they are let go over it if it does."""
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    at, copy = QPoint(200, 200), Qt.DropAction.CopyAction
    button, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(at, copy, data, button, none)
    enter.ignore()
    QApplication.sendEvent(window, enter)
    if enter.isAccepted():
        QApplication.sendEvent(window, QDropEvent(QPointF(at), copy, data, button, none))
    return enter.isAccepted()


@pytest.fixture(scope="session")
def one_window(light: Theme, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MainWindow]:
    made = MainWindow(light, pictures.actions(tmp_path_factory.mktemp("home")))
    made.setProperty("shared", True)
    made.show()
    yield made
    made.close()


@pytest.fixture
def window(qtbot: QtBot, one_window: MainWindow) -> MainWindow:
    """A window in its first size, with whatever pages earlier tests have opened."""
    one_window.resize(1180, 780)
    one_window.go("overview")
    return one_window


@pytest.fixture
def desktop(qapp: QApplication, tmp_path: Path) -> Iterator[Desktop]:
    made = Desktop(qapp, tmp_path, "light")
    yield made
    made.window.close_down()
    made._close_all()
    made.tray.hide()
    made.window.deleteLater()


@pytest.fixture
def german(qapp: QApplication) -> Iterator[None]:
    before, translator = QLocale(), QTranslator()
    assert translator.load(str(translating.FOLDER / "shoal_de.qm"))
    qapp.installTranslator(translator)
    QLocale.setDefault(QLocale("de"))
    yield
    QLocale.setDefault(before)
    qapp.removeTranslator(translator)


@pytest.fixture
def xvfb() -> str:
    if sys.platform != "linux" or not shutil.which("Xvfb") or not shutil.which("xdotool"):
        pytest.skip("Xvfb and xdotool are needed (packages xvfb, xdotool)")
    return str(shutil.which("Xvfb"))
