"""Seven kinds of settings: changed in one place, each is shown right in every other within a second, in a real
window over a real data folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel, QMessageBox
from pytestqt.qtbot import QtBot

from app.common import home as place
from app.desktop.login import LinuxAutostart
from app.node.rules.preferences import Preferences
from app.ui.overview.page import Now
from app.ui.privacy.page import Privacy
from app.ui.process.control import TICK_MS
from app.ui.settings.page import LOGIN_MS, SettingRow
from app.ui.shell import login
from app.ui.shell.desktop import Desktop
from app.ui.theme.theme import DARK
from app.ui.view.settings import Choices
from app.ui.widgets.selecting import Segments, Switch

PATIENCE_MS = 240_000
"""On a busy computer. What makes it a second on an idle one are the two clocks below."""


def test_every_clock_that_is_waited_for_ticks_within_a_second() -> None:
    assert TICK_MS + LOGIN_MS < 1000


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SHOAL_HOME", raising=False)
    folder = tmp_path / "data" / "shoal"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text("{}")
    return folder


@pytest.fixture
def autostart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LinuxAutostart:
    made = LinuxAutostart(tmp_path / "autostart")
    monkeypatch.setattr(login, "autostart", lambda: made)
    return made


class Seen:
    """A window, and what of a setting can be seen in it."""

    def __init__(self, desktop: Desktop, qtbot: QtBot) -> None:
        self.desktop, self._qtbot = desktop, qtbot
        desktop.window.show()

    def row(self, key: str) -> SettingRow:
        self.desktop.window.go("settings")
        page = self.desktop.window._pages["settings"]
        return next(row for row in page.findChildren(SettingRow) if row.key == key)

    def set(self, key: str, value: Any) -> None:
        """With the very control of the settings."""
        control = self.row(key)._editor.widget
        if isinstance(control, Switch):
            assert control.isChecked() is not value
            self._qtbot.mouseClick(control, Qt.MouseButton.LeftButton)
        elif isinstance(control, Segments):
            at = control._values.index(value)
            self._qtbot.mouseClick(control._group.button(at), Qt.MouseButton.LeftButton)
        else:
            control.setValue(value)  # type: ignore[attr-defined]

    def shown(self, key: str) -> Any:
        control = self.row(key)._editor.widget
        if isinstance(control, Switch):
            return control.isChecked()
        return control.value if isinstance(control, Segments) else control.value()  # type: ignore[attr-defined]

    def now(self) -> Now:
        self.desktop.window.go("overview")
        (now,) = self.desktop.window._pages["overview"].findChildren(Now)
        return now

    def privacy(self) -> Privacy:
        self.desktop.window.go("privacy")
        page = self.desktop.window._pages["privacy"]
        assert isinstance(page, Privacy)
        return page

    def soon(self, holds: Callable[[], bool]) -> None:
        """By itself, without another look."""
        self._qtbot.waitUntil(holds, timeout=PATIENCE_MS)


@pytest.fixture
def seen(qapp: QApplication, home: Path, autostart: LinuxAutostart, qtbot: QtBot) -> Iterator[Seen]:
    desktop = Desktop(qapp, home, None)
    desktop.choices.remember_window(asked=True)
    yield Seen(desktop, qtbot)
    desktop.models.close()
    desktop.identity.close()
    desktop.control.close()
    desktop.window.hide()
    desktop.window.deleteLater()


def kept(home: Path, file: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / file).read_text())
    return found


def test_company(seen: Seen, home: Path) -> None:
    seen.set("company", "others")
    seen.soon(lambda: seen.privacy()._switch.isChecked())
    seen.desktop.control.leave()
    seen.soon(lambda: not seen.privacy()._switch.isChecked())
    seen.soon(lambda: seen.shown("company") == "alone")
    assert kept(home, "window.json")["company"] == "alone"


def test_language(seen: Seen, home: Path, qapp: QApplication) -> None:
    seen.set("language", "de")
    seen.soon(lambda: kept(home, "window.json")["language"] == "de")
    reopen = seen.row("language")._reopen
    assert reopen is not None and reopen.isVisible()
    assert Choices(home)["language"] == "de", "what the window reads when it opens again"
    reopen.click()
    assert seen.desktop.again is not None, "it does open again"


def test_effort(seen: Seen, home: Path) -> None:
    seen.set("dial", "quiet")
    seen.soon(lambda: seen.now()._dial.value == "quiet")
    full = seen.now()._dial
    full._group.button(full._values.index("full")).click()
    seen.soon(lambda: seen.shown("dial") == "full")
    assert Preferences(home).values["dial"] == "full"


def test_limits(seen: Seen, home: Path) -> None:
    seen.set("cpu_limit", 61)
    seen.soon(lambda: Preferences(home).values["cpu_limit"] == 61)
    seen.desktop.window.setFocus()
    told = {"event": "settings", "round": 3, "values": {**Preferences(home).values, "cpu_limit": 44}}
    seen.desktop.control._line(json.dumps(told).encode())  # a node says that another window changed it
    seen.soon(lambda: seen.shown("cpu_limit") == 44)


def test_folder(
    seen: Seen,
    home: Path,
    tmp_path: Path,
    qapp: QApplication,
    autostart: LinuxAutostart,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(QMessageBox, "exec", lambda _: 0)
    seen.set("start_at_login", True)
    to = tmp_path / "elsewhere" / "shoal"
    seen.desktop.use_folder(to)
    assert place.default_home() == to
    again = Seen(Desktop(qapp, to, None), qtbot)
    try:
        for page in ("settings", "privacy"):
            again.desktop.window.go(page)
            texts = [label.text() for label in again.desktop.window._pages[page].findChildren(QLabel)]
            assert str(to) in texts, page
        assert login.AutostartSwitch(to).starts_from_here() and again.shown("start_at_login")
    finally:
        again.desktop.identity.close()
        again.desktop.control.close()
        again.desktop.window.hide()
        again.desktop.window.deleteLater()


def test_start_at_login(seen: Seen, autostart: LinuxAutostart) -> None:
    seen.set("start_at_login", True)
    seen.soon(lambda: autostart.command() is not None)
    autostart.turn_off()  # in the settings of the desktop
    seen.soon(lambda: seen.shown("start_at_login") is False)
    login.AutostartSwitch(seen.desktop._home).turn(True)
    seen.soon(lambda: seen.shown("start_at_login") is True)


def test_theme(seen: Seen, home: Path) -> None:
    """The last one here: each window after it would be drawn anew in light."""
    assert seen.desktop.theme.palette is not DARK
    seen.set("theme", "dark")
    seen.soon(lambda: seen.desktop.theme.palette is DARK)
    assert kept(home, "window.json")["theme"] == "dark"
