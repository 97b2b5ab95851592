"""You as a peer, on the page Try it: the offer and its words."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from tests.ui.chat.test_tryit import GOOD, PATIENCE_MS, Open, heard, open_page
from tests.ui.drawing import press, texts

__all__ = ["open_page"]
TEACHES = (
    GOOD.replace("unseen=True", 'unseen=asked["sort"] == "test"')
    .replace(
        'solved=asked["answer"] == "4")',
        'solved=asked["answer"] == "4", offer="12=3*4 #4" if asked["work"] else "")',
    )
    .replace(
        '    elif asked["type"] in',
        '    elif asked["type"] == "give":\n        say("given", number)\n    elif asked["type"] in',
    )
)


def test_an_answer_teaches_only_after_a_yes_to_its_very_text(
    qtbot: QtBot, open_page: Open, tmp_path: Path
) -> None:
    page = open_page(TEACHES)
    press(qtbot, page, "Teach it one")
    qtbot.waitUntil(lambda: page._card.send.isEnabled(), timeout=PATIENCE_MS)
    assert "a puzzle of practice" in texts(page) and page._card.work.isVisibleTo(page)
    page.resize(968, 420)
    page._card.work.setText("12=3*4")
    page._card.own.setText("4")
    press(qtbot, page, "Check mine")
    qtbot.waitUntil(lambda: "May your answer teach?" in texts(page), timeout=PATIENCE_MS)
    assert "12=3*4 #4" in texts(page) and "stays on this computer" in texts(page)
    assert '"type":"give"' not in heard(tmp_path)
    qtbot.waitUntil(lambda: not page._busy, timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: page.verticalScrollBar().value() > 0, timeout=PATIENCE_MS)
    press(qtbot, page, "Teach my model")
    qtbot.waitUntil(lambda: "Thank you." in texts(page), timeout=PATIENCE_MS)
    assert '"type":"give"' in heard(tmp_path) and '"teach":true,"share":false' in heard(tmp_path)
