"""The window that opens another data folder, and the one that removes everything."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QFileDialog,
    QLabel,
    QMessageBox,
)
from pytestqt.qtbot import QtBot

from app.common import home as place
from app.desktop.login import LinuxAutostart
from app.node.data import removal
from app.node.record.errors import NodeError
from app.ui.frame.frame import Actions
from app.ui.settings.storage import Storage, removal_text, target
from app.ui.shell import login
from app.ui.shell.desktop import Desktop


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SHOAL_HOME", raising=False)
    folder = tmp_path / "data" / "shoal"
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "curve").write_bytes(b"x" * 3_000_000)
    (folder / "settings.json").write_text('{"idle_s": 61}')
    return folder


@pytest.fixture
def autostart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LinuxAutostart:
    made = LinuxAutostart(tmp_path / "autostart")
    monkeypatch.setattr(login, "autostart", lambda: made)
    monkeypatch.setattr(removal, "autostart", lambda: made)
    return made


@pytest.fixture
def desktop(qapp: QApplication, home: Path, autostart: LinuxAutostart) -> Iterator[Desktop]:
    made = Desktop(qapp, home, "light")
    made.window.show()
    yield made
    made.control.close()
    made.window.hide()
    made.window.deleteLater()


def test_another_folder_is_opened_and_nothing_copied(
    desktop: Desktop, autostart: LinuxAutostart, home: Path, tmp_path: Path
) -> None:
    autostart.turn_on([sys.executable, "window", "--background", "--home", str(home)])
    with pytest.raises(NodeError, match="can't be the data folder"):
        desktop.use_folder(home / "settings.json")
    desktop.use_folder(tmp_path / "new")
    assert place.home() == tmp_path / "new" and (home / "models" / "curve").stat().st_size == 3_000_000
    assert desktop.again == [], "the next window finds it by itself"
    assert autostart.command() is not None and "--home" not in (autostart.command() or [])


def test_everything_is_removed(
    desktop: Desktop, autostart: LinuxAutostart, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QMessageBox, "information", lambda *args: pytest.fail(str(args[-1])))
    autostart.turn_on([sys.executable, "window"])
    desktop.remove_all()
    assert not home.exists() and autostart.command() is None and desktop.again is None


def test_the_card_tells_sizes_and_asks_first(
    qtbot: QtBot,
    actions: Actions,
    asked: list[object],
    home: Path,
    autostart: LinuxAutostart,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    card = Storage(actions)
    qtbot.addWidget(card)
    card.show_home(home)
    card.show()
    qtbot.waitUntil(lambda: "3.0 MB" in [one.text() for one in card.findChildren(QLabel)], timeout=30_000)
    buttons = {one.text(): one for one in card.findChildren(QAbstractButton)}
    (home / "thesis.odt").touch()
    said: list[str] = []

    def choose(box: QMessageBox, wanted: QMessageBox.ButtonRole) -> None:
        said.append(box.text() + box.informativeText())
        pressed = next(one for one in box.buttons() if box.buttonRole(one) is wanted)
        monkeypatch.setattr(QMessageBox, "clickedButton", lambda _: pressed)

    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path))
    roles = QMessageBox.ButtonRole
    for role in (roles.RejectRole, roles.DestructiveRole):
        monkeypatch.setattr(QMessageBox, "exec", lambda box, role=role: choose(box, role))
        buttons["Delete everything …"].click()
    assert asked == ["remove_all"] and "3.0 MB" in said[0]
    assert "thesis.odt (not created by Shoal; it stays)" in said[0]
    for role in (roles.RejectRole, roles.AcceptRole):
        monkeypatch.setattr(QMessageBox, "exec", lambda box, role=role: choose(box, role))
        buttons["Use another folder …"].click()
    assert asked == ["remove_all", ("use_folder", tmp_path / "Shoal")]
    (home / "format.json").touch()
    assert (
        target(home) == home
        and target(tmp_path / "data") == tmp_path / "data" / "Shoal"
        and target(tmp_path / "none") != tmp_path
    )
    assert "the program itself" in removal_text(removal.plan(home))
