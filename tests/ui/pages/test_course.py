"""The course is walked through as it is written: what it names is pressed where it says, in a real window over
a node that learns, and what it quotes is on the screen."""

from __future__ import annotations

import re
from collections.abc import Callable

from PySide6.QtCore import QLocale, QTranslator
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.sapo.advantages import mean_centred
from app.ui.chat.page import TryIt
from app.ui.language.texts import load_language, tr
from app.ui.pages.manual import topics
from app.ui.privacy.group import weight_sentence
from app.ui.privacy.live import Live
from app.ui.shell.desktop import Desktop
from app.ui.view.view import NodeStatus
from tests.ui import views
from tests.ui.drawing import press, shown, texts

PATIENCE_MS = 240_000
_NAMED = re.compile(r"\*\*(.+?)\*\*")
_QUOTED = re.compile(r'["„](.+?)["“]', re.DOTALL)


def steps(language: str) -> list[str]:
    """What comes before the first step, each step, the ending, what follows."""
    return next(one.text for one in topics(language) if one.key == "course").split("\n## ")


def names(text: str) -> list[str]:
    return _NAMED.findall(text)


def quotes(text: str) -> list[str]:
    return [" ".join(said.split()) for said in _QUOTED.findall(text)]


def test_each_step_in_the_window_happens_as_it_is_written(desktop: Desktop, qtbot: QtBot) -> None:
    desktop.open()
    window = desktop.window
    titles = {
        entry.text(): key for entry, key in zip(window._sidebar._group.buttons(), window._makers, strict=True)
    }
    _, first, second, third, fourth, *_ = steps("en")

    def seen() -> str:
        return texts(window._pages[window.page])

    def soon(holds: Callable[[], bool]) -> None:
        qtbot.waitUntil(holds, timeout=PATIENCE_MS)

    def does(name: str) -> None:
        if name in titles:
            window.go(titles[name])
        else:
            press(qtbot, window._pages[window.page], name)

    tried, draw, check, right, wrong = names(first)
    does(tried)
    page = window._pages["tryit"]
    assert isinstance(page, TryIt)
    does(draw)
    soon(lambda: page._card.puzzle is not None and shown(page)[check].isEnabled())
    page._card.own.setText("no idea")
    does(check)
    soon(lambda: wrong in seen())
    assert tr("✓ right") == right

    overview, learn, live = names(second)
    for name in (overview, learn):
        does(name)
    soon(lambda: len(desktop.control.view.rounds) >= 1)
    does(live)
    page = window._pages["live"]
    assert isinstance(page, Live)
    soon(lambda: any(0 < sum(one.rewards_G) < 8 for one in desktop.control.view.groups))
    (compared,) = quotes(second)
    two_of_eight = views.group(1, 0, "gcd", [("#12", at < 2) for at in range(8)])
    assert weight_sentence(two_of_eight) == compared
    worth = mean_centred(two_of_eight.rewards_G)
    assert (f"+{worth[0]:.2f}" in second) and f"−{-worth[-1]:.2f}" in second and len(worth) == 8
    compares = re.compile(re.sub(r"\d+", r"[\\d.]+", re.escape(compared)))
    soon(lambda: bool(compares.search(seen())))
    assert "✓" in seen() and "✗" in seen()

    (again,), (teaches_nothing,) = names(third), quotes(third)
    assert titles[again] == window.page
    soon(lambda: teaches_nothing in seen())

    back, measured, practice, *_ = names(fourth)
    does(back)
    assert names(fourth)[-1] == "Learn while I'm away"
    assert f"with {desktop.control.view.curve[0].questions} puzzles" in fourth
    for name in (practice, measured, names(fourth)[-1]):
        does(name)
    soon(lambda: desktop.control.view.state is NodeStatus.PAUSED)


def test_the_german_course_names_and_quotes_the_same(qapp: QApplication) -> None:
    english, german = steps("en"), steps("de")
    before = set(qapp.findChildren(QTranslator))
    load_language(qapp, "de")
    try:
        assert len(english) == len(german) > 6
        for ours, theirs in zip(english, german, strict=True):
            assert sorted(map(tr, names(ours))) == sorted(names(theirs))
            said = [tr(re.sub(r"\b3\b", "{n}", one)).replace("{n}", "3") for one in quotes(ours)]
            assert said == quotes(theirs)
    finally:
        for translator in set(qapp.findChildren(QTranslator)) - before:
            qapp.removeTranslator(translator)
        QLocale.setDefault(QLocale.system())
