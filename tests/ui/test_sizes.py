"""Every page works at every size of window that there may be, in every language: controls are seen, named and
reached by Tab, texts are whole, and Enter presses what the page is about."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QLocale, QSize, Qt, QTranslator
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.ui.language.texts import load_language
from app.ui.overview.page import Overview
from app.ui.shell.start import LEAST_ROOM
from app.ui.shell.window import MIN, MainWindow, first_size
from app.ui.theme import Theme
from app.ui.view.view import View
from app.ui.widgets.pieces import field
from app.ui.widgets.selecting import Switch
from tests.ui import pictures, views
from tests.ui.geometry import faults

SCREENS = [(1280, 720), (1366, 768)]
SMALLEST = first_size(QSize(*MIN), QSize(*LEAST_ROOM)).toTuple()
"""Of a screen of 1280x720 at 200 %, or with a system font of 22 pt; in pixels before scaling."""
LARGER = [first_size(QSize(1180, 780), QSize(*screen)).toTuple() for screen in (*SCREENS, (1024, 700))]
SIZES = [*LARGER, MIN, (736, 552), (784, 441), SMALLEST]
"""Also those of a screen of 800x600, and of 1280x720 at 150 %."""
SCENES = {name: (page, view) for name, page, view in pictures.scenes(None) if name != "models-crammed"}
SCENES["overview-failed"] = ("overview", views.failed())


@pytest.fixture(scope="module", params=[pytest.param("en", marks=pytest.mark.long), "de"])
def spoken(
    request: pytest.FixtureRequest, qapp: QApplication, light: Theme, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MainWindow]:
    """A window in each language, with a home of its own; by default in German, whose words are longer."""
    before = set(qapp.findChildren(QTranslator))
    load_language(qapp, request.param)
    made = MainWindow(light, pictures.actions(tmp_path_factory.mktemp("home")))
    made.show()
    yield made
    made.close()
    for translator in set(qapp.findChildren(QTranslator)) - before:
        qapp.removeTranslator(translator)
    QLocale.setDefault(QLocale.system())


@pytest.mark.parametrize(
    "size",
    [*(pytest.param(size, marks=pytest.mark.long) for size in SIZES[:-1]), SMALLEST],
    ids=lambda size: "{}x{}".format(*size),
)
def test_nothing_is_out_of_reach_or_cut(spoken: MainWindow, size: tuple[int, int]) -> None:
    spoken.setMinimumSize(QSize(*size).boundedTo(QSize(*MIN)))
    spoken.resize(*size)
    found = []
    for scene, (page, view) in SCENES.items():
        _show(spoken, scene, page, view)
        found += [f"{scene}: {fault}" for fault in faults(spoken)]
    assert not found, "\n".join(found)
    assert spoken.size().toTuple() == size


@pytest.mark.parametrize("scene", ["in use", "busy", "paused"])
def test_why_it_waits_is_whole_in_the_smallest_window(spoken: MainWindow, scene: str) -> None:
    spoken.resize(*MIN)
    _show(spoken, scene, "overview", views.odd()[scene])
    page = spoken._pages["overview"]
    assert isinstance(page, Overview)
    for line in (page._now._held, page._now._why):
        assert line.text() and line.width() >= line.sizeHint().width(), line.text()
    assert not faults(spoken)


def test_everything_is_larger_with_a_large_font_of_the_system() -> None:
    """In a process of its own: an application ends for it. The screen there has 800x800 pixels."""
    code = """
import os
from PySide6.QtGui import QFont
from app.ui.shell.start import Application, enlarged
def seen(points):
    made = Application([])
    made.setFont(QFont("Inter", points))
    return (now := enlarged(made)).devicePixelRatio(), now is made, now.shutdown()
print(*seen(11)[:2], *seen(13)[:2], *seen(22)[:2], os.environ["QT_SCALE_FACTOR"])
"""
    environment = {**os.environ, "QT_SCALE_FACTOR": "1", "QT_QPA_PLATFORM": "offscreen"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    usual, same, larger, another, most, _, factor = said.stdout.split()
    assert (usual, same, another, factor) == ("1.0", "True", "False", "1"), said.stderr
    assert 1.1 < float(larger) < 1.2 and most == "1.25", "a page needs 640 of the 800 pixels"


@pytest.mark.parametrize("size", LARGER, ids=lambda size: "{}x{}".format(*size))
@pytest.mark.parametrize("scene", ["welcome", "welcome-model", "welcome-company", "welcome-invite"])
def test_the_first_steps_need_no_scrolling_on_a_small_screen(
    spoken: MainWindow, scene: str, size: tuple[int, int]
) -> None:
    spoken.resize(*size)
    _show(spoken, scene, *SCENES[scene])
    for one in spoken.findChildren(QPushButton):
        assert one.isEnabled() or one.property("look") not in ("large", "second"), "grey, and nobody says why"
        if one.isVisible() and one.property("look") in ("large", "second"):
            bottom = one.mapTo(spoken, one.rect().bottomLeft()).y()
            assert bottom < spoken.height(), one.text()


def test_a_focused_step_is_scrolled_to(spoken: MainWindow) -> None:
    """The smallest window shows only a part of a step; the button that the keyboard is on is in it."""
    spoken.resize(*MIN)
    _show(spoken, "welcome-model", *SCENES["welcome-model"])
    page = spoken._pages["overview"]
    assert isinstance(page, Overview)
    page._welcome._show(page._welcome._company)
    QApplication.processEvents()
    button = page._welcome._company._start
    assert button.hasFocus() and not button.visibleRegion().isEmpty()


def test_the_helper_finds_what_is_wrong(qtbot: QtBot, light: Theme) -> None:
    """It is no use if it cannot fail."""
    window = QPushButton("a frame")
    qtbot.addWidget(window)
    window.resize(200, 100)
    beside = QPushButton("beside", window)
    beside.move(180, 10)
    cut = QPushButton("much more text than there is room for", window)
    cut.setGeometry(0, 40, 60, 30)
    nameless = field("", "")
    nameless.setParent(window)
    deaf = Switch(light, "deaf")
    deaf.setParent(window)
    deaf.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
    window.show()
    said = "\n".join(faults(window))
    assert "'beside' is cut off" in said and "'much more text than there is room for' is cut:" in said
    assert "has no name" in said and "'deaf' is not reached by Tab" in said


@pytest.mark.parametrize("room", [*SCREENS, (1440, 900), (2560, 1440), (800, 600)])
def test_a_window_opens_within_its_screen(room: tuple[int, int]) -> None:
    wanted = QSize(1180, 780)
    size = first_size(wanted, QSize(*room))
    assert size.width() <= 0.92 * room[0] and size.height() <= 0.92 * room[1]
    assert size == wanted or room[0] < 1283 or room[1] < 848


def test_a_place_of_a_larger_screen_is_fitted_into_this_one(qtbot: QtBot, light: Theme, tmp_path: Path) -> None:
    room = QApplication.primaryScreen().availableGeometry()
    first = MainWindow(light, pictures.actions(tmp_path))
    qtbot.addWidget(first)
    first.show()
    first.setGeometry(300, 400, 3000, 2000)
    place = first.saved_place()
    again = MainWindow(light, pictures.actions(tmp_path))
    qtbot.addWidget(again)
    again.restore_place(place)
    again.show()
    assert again.width() <= max(0.92 * room.width(), MIN[0]) and again.height() <= 0.92 * room.height()
    assert room.contains(again.frameGeometry().topLeft())


def test_enter_presses_what_has_the_focus_and_else_what_the_page_is_about(
    qtbot: QtBot, window: MainWindow
) -> None:
    pressed: list[str] = []
    window.show_view(View(home="/tmp"))
    page = window._pages["overview"]
    assert isinstance(page, Overview)
    welcome = page._welcome
    welcome._show(welcome._what)
    QApplication.processEvents()
    qtbot.keyClick(welcome._what._on, Qt.Key.Key_Return)
    assert welcome._model.isVisible() and not welcome._what.isVisible()
    welcome._show(welcome._company)
    for one in welcome.findChildren(QPushButton):
        one.clicked.connect(lambda _=False, one=one: pressed.append(one.text()))
    radio = welcome._company._options._group.buttons()[1]
    radio.setFocus()
    qtbot.keyClick(radio, Qt.Key.Key_Enter)
    assert pressed == [welcome._company._start.text()]


def _show(window: MainWindow, scene: str, page: str, view: View) -> None:
    window.show_view(view)
    window.go(page)
    pictures.prepare(scene, window)
    for _ in range(12):  # a change of size goes through one layout after another
        QApplication.processEvents()


def test_tab_into_a_page_from_beside_it_scrolls_there(window: MainWindow, qtbot: QtBot) -> None:
    window.resize(1000, 560)
    window.go("settings")
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    page = window._pages["settings"]
    QApplication.processEvents()
    page.verticalScrollBar().setValue(page.verticalScrollBar().maximum())
    places = window._sidebar._group.buttons()
    places[0].setFocus()
    for _ in range(len(places) + 2):
        qtbot.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Tab)
        if (now := QApplication.focusWidget()) is not None and page.isAncestorOf(now):
            break
    else:
        raise AssertionError("Tab leaves the side bar")
    at = now.mapTo(page.viewport(), now.rect().center())
    assert page.viewport().rect().contains(at)
