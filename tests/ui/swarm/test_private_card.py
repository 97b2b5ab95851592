"""Six words are made, taken, hidden, copied, and drawn so that a camera reads them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.swarm.invite.private import check_words, new_words
from app.ui.frame.frame import Actions
from app.ui.swarm.page import SwarmPage
from app.ui.swarm.private_card import HIDDEN, PrivateCard
from app.ui.theme import Theme
from app.ui.widgets.copying import CopyButton
from app.ui.widgets.qr_code import MOST, encode
from tests.ui import views
from tests.ui.test_pages import shown, texts


def test_words_are_checked_before_anybody_is_asked(
    qtbot: QtBot, light: Theme, actions: Actions, asked: list[object]
) -> None:
    page = SwarmPage(light, actions)
    qtbot.addWidget(page)
    page.show()
    page.show_view(views.learning())
    card = page._private
    card._field.setText("one two three")
    qtbot.keyClick(card._field, Qt.Key.Key_Return)
    assert not asked and "A private swarm has 6 words" in texts(page)
    words = new_words()
    card._field.setText(words.replace(" ", ", ").upper())
    qtbot.keyClick(card._field, Qt.Key.Key_Return)
    assert asked == [("private", words)]
    assert words not in texts(page) and HIDDEN in texts(page)


def test_new_words_are_shown_once_and_then_on_request(qtbot: QtBot, light: Theme) -> None:
    joined: list[str] = []
    card = PrivateCard(light, joined.append)
    qtbot.addWidget(card)
    card.show()
    shown(card)["Make new words"].click()
    (words,) = joined
    assert check_words(words) == words and words in texts(card) and card._qr.isVisible()
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


@pytest.mark.parametrize("text", ["a", new_words(), "z" * MOST], ids=["one letter", "six words", "most"])
def test_a_camera_reads_the_code(text: str, tmp_path: Path) -> None:
    reader = shutil.which("zbarimg")
    if reader is None:
        pytest.skip("zbarimg is needed (package zbar-tools)")
    quiet, scale = 4, 6
    modules = [[False] * (33 + 2 * quiet) for _ in range(33 + 2 * quiet)]
    for row, line in enumerate(encode(text), quiet):
        modules[row][quiet:-quiet] = line
    pixels = [" ".join(str(int(dark)) for dark in line for _ in range(scale)) for line in modules]
    side = len(modules) * scale
    file = tmp_path / "code.pbm"
    file.write_text(f"P1\n{side} {side}\n" + "\n".join(line for line in pixels for _ in range(scale)))
    read = subprocess.run([reader, "-q", "--raw", str(file)], capture_output=True, text=True)
    assert read.stdout.strip() == text


def test_a_code_has_its_finders_and_no_more_than_it_holds() -> None:
    modules = encode("abc")
    finder = ["#######", "#.....#", "#.###.#", "#.###.#", "#.###.#", "#.....#", "#######"]
    for top, left in ((0, 0), (0, 26), (26, 0)):
        drawn = ["".join(".#"[dark] for dark in line[left : left + 7]) for line in modules[top : top + 7]]
        assert drawn == finder
    with pytest.raises(ValueError, match="78 bytes"):
        encode("z" * (MOST + 1))
