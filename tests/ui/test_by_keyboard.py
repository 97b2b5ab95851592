"""Every page by the keyboard alone, and what a screen reader is told on the way: each stop of the Tab key has a
role and a name, is seen to have the focus, and comes after what stands above it. `pytest -s` prints them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.ui.charts.table import Column, Table, TableRows
from app.ui.shell.window import MainWindow
from app.ui.theme import Theme
from app.ui.widgets.pieces import column, field
from tests.ui import pictures
from tests.ui.geometry import unheard

SCENES = ("welcome", "welcome-model", "welcome-company", "overview", "live", "skills", "swarm", "history")
SCENES += ("models-broken", "tryit", "privacy", "settings", "help", "swarm-alone")
_MOST = 200


def stops(window: QWidget, inside: QWidget, qtbot: QtBot) -> Iterator[QWidget]:
    """Where Tab leads within a part of a window, from its beginning."""
    inside.setFocus()
    for _ in range(_MOST):
        qtbot.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Tab)
        now = QApplication.focusWidget()
        if now is None or not inside.isAncestorOf(now):
            return
        yield now
    raise AssertionError("Tab does not leave the page")


def heard(widget: QWidget) -> str:
    """Its role, name and description, as a screen reader is told."""
    seen = QAccessible.queryAccessibleInterface(widget)
    said = (seen.text(QAccessible.Text.Name), seen.text(QAccessible.Text.Description))
    return f"{seen.role().name}: {'. '.join(filter(None, said))}"


def place(widget: QWidget, inside: QWidget) -> QRect:
    return QRect(widget.mapTo(inside, QPoint(0, 0)), widget.size())


@pytest.mark.parametrize("scene", SCENES)
def test_a_page_is_walked_by_tab(window: MainWindow, qtbot: QtBot, scene: str) -> None:
    page, view = {name: (key, view) for name, key, view in pictures.scenes(None)}[scene]
    window.show_view(view)
    window.go(page)
    pictures.prepare(scene, window)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    area = window._pages[page]
    qtbot.waitUntil(area.updatesEnabled)
    for _ in range(12):  # rows that were just made have no size yet
        QApplication.processEvents()
    print(f"\n{scene}")
    came, wrong = [], []
    for stop in stops(window, area, qtbot):
        if stop in came:  # another link of the same text
            continue
        print("  ", heard(stop))
        wrong += [f"{heard(stop)}: {fault}" for fault in unheard(stop)]
        if not area.viewport().rect().intersects(place(stop, area.viewport())):
            wrong.append(f"{heard(stop)} is out of sight")
        if came and place(stop, area.widget()).bottom() < place(came[-1], area.widget()).top():
            wrong.append(f"{heard(stop)} comes after {heard(came[-1])}, and stands above it")
        focused = stop.grab().toImage()
        area.setFocus()
        if stop.grab().toImage() == focused:
            wrong.append(f"{heard(stop)} looks the same with and without the focus")
        stop.setFocus()
        came.append(stop)
    assert came and not wrong, "\n".join(wrong)
    assert window._sidebar._group.checkedButton().hasFocus(), "after the last one comes the page's own entry"


def test_a_control_without_a_name_is_found(qtbot: QtBot, light: Theme) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    window.setLayout(column(QPushButton("named"), field("", "")))
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    window.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
    found = [heard(widget) for widget in window.findChildren(QWidget) if unheard(widget)]
    assert len(found) == 1 and found[0].startswith("EditableText")


def test_a_table_is_sorted_by_a_key(qtbot: QtBot, light: Theme) -> None:
    rows = TableRows([Column("Name", str), Column("Length", lambda one: str(len(one)), len, right=True)])
    table = Table(rows, "Words")
    qtbot.addWidget(table)
    table.show_rows(("bb", "a", "ccc"))
    table.setCurrentIndex(rows.index(0, 1))
    qtbot.keyClick(table, Qt.Key.Key_S)
    assert rows.shown == ["ccc", "bb", "a"] and table.currentIndex().column() == 1
    qtbot.keyClick(table, Qt.Key.Key_S)
    assert rows.shown == ["a", "bb", "ccc"]
