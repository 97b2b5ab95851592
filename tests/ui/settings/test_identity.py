"""The owner's identity in Settings: what is asked first, what goes out of sight, and what is done."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QMessageBox, QPlainTextEdit
from pytestqt.qtbot import QtBot

from app.desktop.login import LinuxAutostart
from app.node.data.home import lock_data_folder
from app.node.record.errors import BusyError
from app.swarm.identity.identity import WORDS as N
from app.swarm.identity.identity import Identity as Key
from app.swarm.identity.storage import keep_plain
from app.ui.process.identity import IdentityControl
from app.ui.settings.identity import WORDS, IdentitySection, RestoreDialog
from app.ui.settings.page import SettingsPage
from app.ui.shell import login
from app.ui.shell.desktop import Desktop
from app.ui.view.view import Persona
from tests.ui import views
from tests.ui.drawing import shown, texts
from tests.ui.pictures import Noted

MINE = Key(bytes(range(32)))
NOBODY = 30_000
ROLES = QMessageBox.ButtonRole


def answer(monkeypatch: pytest.MonkeyPatch, role: QMessageBox.ButtonRole) -> list[str]:
    """Whoever is asked presses this; returns what they were asked."""
    said: list[str] = []

    def press(box: QMessageBox) -> None:
        said.append(f"{box.text()} {box.informativeText()}")
        assert box.defaultButton() is not None and box.buttonRole(box.defaultButton()) is ROLES.RejectRole
        pressed = next(one for one in box.buttons() if box.buttonRole(one) is role)
        monkeypatch.setattr(QMessageBox, "clickedButton", lambda _: pressed)

    monkeypatch.setattr(QMessageBox, "exec", press)
    return said


@pytest.fixture
def ask(asked: list[object]) -> Any:
    def words(then: Callable[[str], None]) -> None:
        asked.append("words")
        then(views.WORDS)

    return Noted(asked, words=words)


@pytest.fixture
def section(qtbot: QtBot, ask: Any) -> IdentitySection:
    made = IdentitySection(ask)
    qtbot.addWidget(made)
    made.show_persona(views.personas()["keyring"])
    made.show()
    return made


@pytest.fixture
def identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IdentityControl]:
    """With real processes, and nobody's own keyring."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    made = IdentityControl(tmp_path)
    yield made
    made.close()


def test_every_state_says_where_the_key_is_and_offers_what_can_be_done(section: IdentitySection) -> None:
    seen = {}
    for name, persona in views.personas().items():
        section.show_persona(persona)
        seen[name] = (
            texts(section).replace("\u200b", ""),
            [text for text, one in shown(section).items() if one.isEnabled()],
        )
    assert "Looking for your key" in seen["unasked"][0] and seen["unasked"][1] == []
    assert "when you first learn with others" in seen["none"][0]
    assert seen["none"][1] == ["Restore from words …"]
    assert "computer's keyring" in seen["keyring"][0] and len(seen["keyring"][1]) == 3
    assert "no keyring" in seen["plain"][0] and ".secret" in seen["plain"][0]
    assert "passphrase" in seen["passphrase"][0] and ".sealed" in seen["passphrase"][0]
    assert seen["passphrase"][1] == ["Restore from words …", "New identity …"]
    assert "is damaged" in seen["failed"][0]
    assert "Changing" in seen["busy"][0] and seen["busy"][1] == []


def test_words_are_shown_after_a_yes_and_go_out_of_sight(
    section: IdentitySection, asked: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = answer(monkeypatch, ROLES.RejectRole)
    shown(section)["Show recovery words"].click()
    assert asked == [] and "Anyone who reads them" in said[0] and "crouch" not in texts(section)
    answer(monkeypatch, ROLES.AcceptRole)
    shown(section)["Show recovery words"].click()
    assert asked == ["words"] and set(views.WORDS.split()) <= set(texts(section).split())
    shown(section)["Hide recovery words"].click()
    assert asked == ["words"] and not [one for one in section.findChildren(QLabel) if "crouch" in one.text()]
    shown(section)["Show recovery words"].click()
    section._timer.timeout.emit()
    assert "crouch" not in texts(section), "by themselves after a while"
    shown(section)["Show recovery words"].click()
    section.show_persona(Persona(name="another-name-1234", kept="keyring", asked=True))
    assert "crouch" not in texts(section), "they are not those of another name"


def test_words_that_come_when_nobody_looks_are_not_texts(section: IdentitySection) -> None:
    section.hide()
    section._take(views.WORDS)
    assert not [one for one in section.findChildren(QLabel) if "crouch" in one.text()]


def test_leaving_the_page_hides_them_and_a_search_finds_the_place(
    opened: Callable[..., Any], ask: Any, asked: list[object]
) -> None:
    page = opened(SettingsPage, views.learning(persona=views.personas()["keyring"]), identity=ask)
    page.enter()
    assert asked == ["refresh"]
    page._identity._take(views.WORDS)
    page.leave()
    assert "crouch" not in texts(page)
    page._find.setText("recovery words")
    assert page._identity.isVisible() and page._nothing.isHidden()
    page._find.setText("battery")
    assert not page._identity.isVisible()


def test_a_new_name_is_taken_after_a_yes_that_knows_what_is_lost(
    section: IdentitySection, asked: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = answer(monkeypatch, ROLES.RejectRole)
    shown(section)["New identity …"].click()
    assert asked == [] and "humble-gecko-6607" in said[0] and "write them down first" in said[0]
    answer(monkeypatch, ROLES.DestructiveRole)
    shown(section)["New identity …"].click()
    assert asked == ["renew"]


def test_words_are_entered_in_a_dialog(
    section: IdentitySection, asked: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = [QDialog.DialogCode.Rejected, QDialog.DialogCode.Accepted]

    def fill(dialog: RestoreDialog) -> QDialog.DialogCode:
        field = dialog.findChild(QPlainTextEdit)
        assert isinstance(field, QPlainTextEdit) and not shown(dialog)["Restore"].isEnabled()
        field.setPlainText("abandon amount liar")
        assert "3 of 24 words" in texts(dialog) and not shown(dialog)["Restore"].isEnabled()
        field.setPlainText(views.WORDS.replace(" ", "\n"))
        assert shown(dialog)["Restore"].isEnabled() and "humble-gecko-6607" in texts(dialog)
        return codes.pop(0)

    monkeypatch.setattr(RestoreDialog, "exec", fill)
    shown(section)["Restore from words …"].click()
    assert asked == []
    shown(section)["Restore from words …"].click()
    assert asked == [("restore", views.WORDS.replace(" ", "\n"))] and WORDS == N


def test_a_real_process_restores_tells_and_renews(
    qtbot: QtBot, identity: IdentityControl, tmp_path: Path
) -> None:
    nights: list[str] = []
    identity.resting.connect(lambda: nights.append("rest"))
    identity.awake.connect(lambda: nights.append("wake"))
    identity.refresh()
    qtbot.waitUntil(lambda: identity.state.asked, timeout=NOBODY)
    assert identity.state == Persona(asked=True)
    identity.restore(f"  {views.WORDS}\n".replace("crouch", "crouch\n\n\n"))
    assert identity.state.busy and nights == ["rest"]
    qtbot.waitUntil(lambda: not identity.state.busy, timeout=NOBODY)
    assert identity.state.name == MINE.name and identity.state.kept == "plain" and nights == ["rest", "wake"]
    if os.name == "posix":
        assert stat.S_IMODE(Path(identity.state.file).stat().st_mode) == 0o600
    told: list[str] = []
    identity.words(told.append)
    qtbot.waitUntil(lambda: bool(told), timeout=NOBODY)
    assert told == [MINE.words()] and MINE.words() not in str(identity.state)
    identity.renew()
    qtbot.waitUntil(lambda: not identity.state.busy, timeout=NOBODY)
    assert identity.state.name not in ("", MINE.name) and identity.state.failed == ""


@pytest.mark.parametrize(
    "words, why",
    [
        ("zoo " * 24, "together they are no key"),
        ("ü\ud800 " * 24, "Word 1"),
    ],
)
def test_what_the_process_refuses_is_said_and_nothing_is_lost(
    qtbot: QtBot, identity: IdentityControl, tmp_path: Path, words: str, why: str
) -> None:
    keep_plain(MINE, tmp_path)
    identity.restore(words)
    qtbot.waitUntil(lambda: not identity.state.busy, timeout=NOBODY)
    assert why in identity.state.failed
    identity.refresh()
    qtbot.waitUntil(lambda: identity.state.name == MINE.name, timeout=NOBODY)


def test_a_node_that_is_still_ending_is_waited_for(
    qtbot: QtBot, identity: IdentityControl, tmp_path: Path
) -> None:
    keep_plain(MINE, tmp_path)
    with lock_data_folder(tmp_path):
        identity.renew()
        qtbot.waitUntil(lambda: identity._doer.pid > 0, timeout=NOBODY)
        qtbot.wait(1500)
        assert identity.state.busy
    qtbot.waitUntil(lambda: not identity.state.busy, timeout=NOBODY)
    assert identity.state.failed == "" and identity.state.name not in ("", MINE.name)


def test_words_that_cannot_be_had_are_told(qtbot: QtBot, identity: IdentityControl, tmp_path: Path) -> None:
    keep_plain(MINE, tmp_path)
    (file,) = tmp_path.glob("*.secret")
    file.write_text("damaged")
    identity.words(lambda words: pytest.fail(words))
    qtbot.waitUntil(lambda: bool(identity.state.failed), timeout=NOBODY)
    assert "is damaged" in identity.state.failed and MINE.name in identity.state.failed


@pytest.mark.long
def test_a_learning_node_rests_and_goes_on_under_the_new_name(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real window's parts, a real node, and the button's own process."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    monkeypatch.setattr(login, "autostart", lambda: LinuxAutostart(tmp_path / "autostart"))
    keep_plain(MINE, tmp_path)
    desktop = Desktop(qapp, tmp_path, "light")
    try:
        desktop.control.learn("alone")
        qtbot.waitUntil(lambda: _taken(tmp_path), timeout=NOBODY)
        before = desktop.node_pid
        desktop.identity.renew()
        qtbot.waitUntil(lambda: not desktop.identity.state.busy, timeout=NOBODY)
        assert desktop.identity.state.failed == ""
        assert desktop.identity.state.name not in ("", MINE.name)
        assert desktop.control.view.persona == desktop.identity.state
        qtbot.waitUntil(lambda: desktop.node_pid not in (0, before) and _taken(tmp_path), timeout=NOBODY)
    finally:
        desktop._close_all()
        desktop.window.deleteLater()


def _taken(home: Path) -> bool:
    """Whether a node holds the data folder."""
    try:
        with lock_data_folder(home):
            return False
    except BusyError:
        return True
