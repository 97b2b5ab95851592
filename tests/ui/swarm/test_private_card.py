"""Six words are made, taken, hidden, copied, and drawn so that a camera reads them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import segno
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.swarm.invite.invite import invite_from_text
from app.swarm.invite.private import validate_words
from app.ui.swarm.page import HIDDEN, PrivateCard, QrCode, SwarmPage
from app.ui.theme import Theme
from app.ui.widgets.pieces import CopyButton
from tests.ui import views
from tests.ui.drawing import shown, texts

TEXT = "alpha bravo charlie delta echo foxtrot"


def test_words_are_checked_before_anybody_is_asked(
    qtbot: QtBot, opened: Callable[..., Any], asked: list[object]
) -> None:
    page = opened(SwarmPage, views.learning())
    field = page._alone._address
    field.setText("one two three four")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert not asked and "An invite or a private swarm has 6 words" in texts(page)
    words = (
        "quote company will sphere clown spot"  # new ones would pass once in 64 times with another word in them
    )
    field.setText(" ".join(["zoo", *words.split()[1:]]))
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert not asked and "one is wrong" in texts(page)
    field.setText(words.replace(" ", ", ").upper())
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert asked == [("join_private", words)]
    page.show_view(msgspec.structs.replace(views.together(), words=words))
    assert words not in texts(page) and HIDDEN in texts(page)


def test_one_field_takes_an_invite_as_six_words_too(
    qtbot: QtBot, opened: Callable[..., Any], asked: list[object]
) -> None:
    page = opened(SwarmPage, views.learning())
    invite = invite_from_text("192.168.1.20:8777")
    page._alone._address.setText(invite.words() or "")
    page._alone._join()
    assert asked == [("join", invite.link())]


def test_new_words_are_shown_once_and_then_on_request(qtbot: QtBot, light: Theme) -> None:
    joined: list[str] = []
    card = PrivateCard(light, joined.append)
    qtbot.addWidget(card)
    card.show()
    shown(card)["Make new words"].click()
    (words,) = joined
    assert validate_words(words) == words and words in texts(card) and card._qr.isVisible()
    shown(card)["Hide the words"].click()
    assert words not in texts(card) and not card._qr.isVisible()
    copy = next(iter(card.findChildren(CopyButton)))
    copy.click()
    assert QApplication.clipboard().text() == words and copy.text() == "Copied"
    card.show_words(words, joined=False)
    shown(card)["Join again"].click()
    assert joined == [words, words]


def test_words_that_cannot_be_kept_are_told(qtbot: QtBot, light: Theme) -> None:
    def full(_: str) -> None:
        raise OSError(28, "No space left on device")

    card = PrivateCard(light, full)
    qtbot.addWidget(card)
    card.show()
    shown(card)["Make new words"].click()
    assert "The words can't be saved: No space left on device." in texts(card)


@pytest.fixture
def picture(qtbot: QtBot) -> QImage:
    """The code of TEXT as it is painted."""
    code = QrCode("a code")
    qtbot.addWidget(code)
    code.show_text(TEXT)
    code.show()
    return code.grab().toImage()


def test_a_camera_reads_the_code(picture: QImage, tmp_path: Path) -> None:
    reader = shutil.which("zbarimg")
    if reader is None:
        pytest.skip("zbarimg is needed (package zbar-tools)")
    assert picture.save(str(tmp_path / "code.png"))
    read = subprocess.run([reader, "-q", "--raw", str(tmp_path / "code.png")], capture_output=True, text=True)
    assert read.stdout.strip() == TEXT


def test_every_module_is_painted_within_a_light_border(picture: QImage) -> None:
    modules = [list(line) for line in segno.make_qr(TEXT).matrix_iter(border=4)]
    side = picture.width() // len(modules)
    middles = [at * side + side // 2 for at in range(len(modules))]
    painted = [[int(picture.pixelColor(x, y).value() < 128) for x in middles] for y in middles]
    assert painted == modules and not any(modules[0]) and side >= 4
