"""The window whose data folder is moved, and the one that removes everything."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QFileDialog,
    QLabel,
    QMessageBox,
    QProgressDialog,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.common import home as place
from app.desktop.login import LinuxAutostart
from app.node.data import removal
from app.ui.frame.frame import Actions
from app.ui.settings.storage import Storage, removal_text, target
from app.ui.shell import data_folder, login
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


def test_moved_it_opens_again_there(
    desktop: Desktop, autostart: LinuxAutostart, home: Path, tmp_path: Path
) -> None:
    autostart.turn_on([sys.executable, "window", "--background", "--home", str(home)])
    desktop.window.go("skills")
    desktop.move_data(tmp_path / "new")
    assert (
        tmp_path / "new" / "models" / "curve"
    ).stat().st_size == 3_000_000 and place.home() == tmp_path / "new"
    assert desktop.again == [], "the next window finds it by itself"
    assert '"skills"' in (tmp_path / "new" / "window-state.json").read_text(), "and opens where one was"
    assert autostart.command() is not None and "--home" not in (autostart.command() or [])
    desktop._remember()
    assert not home.exists(), "nothing is written into the old folder any more"


def test_what_cannot_be_moved_stays_and_is_said(
    desktop: Desktop, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(QMessageBox, "warning", lambda *args: said.append(args[-1]))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    desktop.move_data(tmp_path / "full")
    assert "t empty" in said[0] and (home / "models" / "curve").exists() and desktop.again == []


def test_a_copy_can_be_stopped(
    home: Path, tmp_path: Path, desktop: Desktop, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.node.data import moving

    real_move, real_dialog = moving.move, data_folder._dialog
    dialogs: list[QProgressDialog] = []
    heard = threading.Semaphore(0)

    def seen(parent: QWidget, text: str) -> QProgressDialog:
        dialogs.append(real_dialog(parent, text))
        dialogs[-1].canceled.connect(lambda: heard.release())
        return dialogs[-1]

    def stopped(to: Path, tell: moving.Tell, current: Path | None = None) -> Path:
        def tell_and_stop(done: int, total: int) -> None:
            for _ in range(
                2 if done else 0
            ):  # the window's thread has seen to the first when it hears the second
                dialogs[0].canceled.emit()
                assert heard.acquire(timeout=30)
            tell(done, total)

        return real_move(to, tell_and_stop, current)

    monkeypatch.setattr(data_folder, "_dialog", seen)
    monkeypatch.setattr(moving, "move", stopped)
    assert data_folder.move(desktop.window, home, tmp_path / "new") is False
    assert dialogs and place.home() == home and (home / "models" / "curve").exists()


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
        buttons["Move …"].click()
    assert asked == ["remove_all", ("move_data", tmp_path / "Shoal")]
    assert target(tmp_path / "data") == tmp_path / "data" / "Shoal" and target(tmp_path / "none") != tmp_path
    assert "the program itself" in removal_text(removal.plan(home))
