"Updates of Shoal on the pages: every state says what is, and what can be done."

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.install.updates.asking import UpdateOffer
from app.ui.install import updates
from app.ui.install.updates import UpdateCard
from app.ui.overview.page import Overview
from app.ui.privacy.page import Privacy
from app.ui.settings.page import SettingsPage
from app.ui.view.view import UpdateStage, UpdateView
from tests.ui import views
from tests.ui.drawing import shown, texts
from tests.ui.pictures import Noted
from tests.updates.scenes import OFFER, scenes


@pytest.fixture
def ask(asked: list[object]) -> Any:
    return Noted(asked)


EXPECTED = {
    "checkout": ("git pull", []),
    "never": ("hasn't checked for updates yet", ["Check now"]),
    "newest": ("You're up to date. Checked 3 h ago.", ["Check now"]),
    "asking": ("Asking example.org", ["Cancel"]),
    "there": ("Version 0.2.0 is available", ["Open its page", "Check now"]),
    "cut": ("can't be reached", ["Open its page", "Check now"]),
}


VERBS = {"Check now": "check", "Cancel": "cancel_check"}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_state_says_what_is_and_what_can_be_done(
    name: str, ask: Any, asked: list[object], qtbot: QtBot
) -> None:
    card = UpdateCard(ask)
    qtbot.addWidget(card)
    card.show_update(scenes()[name])
    said, wanted = EXPECTED[name]
    assert said in texts(card) and list(shown(card)) == wanted
    for one in card.findChildren(QPushButton):
        if one.isVisibleTo(card) and one.text() in VERBS:
            one.click()
    assert sorted(asked) == sorted(VERBS[text] for text in wanted if text in VERBS)


def test_the_overview_asks_once_and_tells_quietly(opened: Callable[..., Any], asked: list[object]) -> None:
    page = opened(Overview)
    fresh = UpdateView(version="0.1.0", stage=UpdateStage.IDLE, host="example.org", undecided=True)
    page.show_view(views.learning(update_view=fresh))
    assert not page._update.isVisible(), "alone, the answer would mean nothing"
    run = views.learning().runs[0]
    together = replaced(views.together(), runs=(replaced(run, started=time.time() - 3 * 3600),))
    page.show_view(replaced(together, update_view=fresh, runs=()))
    assert not page._update.isVisible(), "not at the very first"
    page.show_view(replaced(together, update_view=fresh))
    assert "Check for updates once a day?" in texts(page._update) and "example.org" in texts(page._update)
    shown(page._update)["Yes, once a day"].click()
    shown(page._update)["No"].click()
    page.show_view(replaced(together, update_view=replaced(fresh, undecided=False)))
    assert not page._update.isVisible()
    there = replaced(fresh, offer=OFFER)
    page.show_view(views.learning(update_view=there))
    assert "Version 0.2.0 is available" in texts(page._update) and "stays" in texts(page._update)
    shown(page._update)["See what is new"].click()
    shown(page._update)["Skip this one"].click()
    assert asked == [("decide", True), ("decide", False), "settings", ("hide", "0.2.0")]
    page.show_view(views.learning(update_view=replaced(there, hidden="0.2.0")))
    assert not page._update.isVisible()


def test_the_privacy_page_shows_the_request(opened: Callable[..., Any], asked: list[object]) -> None:
    page = opened(Privacy)
    page.show_view(views.learning(update_view=scenes()["newest"]))
    said = texts(page)
    assert "GET /shoal/shoal-release.json.sig HTTP/1.1" in said and "User-Agent: shoal" in said
    assert "Shoal asks example.org only when you press the button" in said
    page._updates._switch.click()
    assert asked == [("decide", True)]
    wanted = replaced(scenes()["newest"], wanted=True)
    page.show_view(views.learning(update_view=wanted))
    assert "never while it learns alone" in texts(page)
    page.show_view(replaced(views.together(), update_view=wanted))
    assert "once a day while" in texts(page)
    page.show_view(views.learning(update_view=scenes()["checkout"]))
    assert "git pull" in texts(page) and "HTTP/1.1" not in texts(page)


def test_settings_hold_the_card_with_its_switch(opened: Callable[..., Any]) -> None:
    page = opened(SettingsPage, views.learning(update_view=replaced(scenes()["there"], wanted=True)))
    said = texts(page)
    assert "Check for updates once a day" in said and "Learns faster." in said
    page._find.setText("upgrade")
    assert page._updates.isVisible()
    page._find.setText("tray")
    assert not page._updates.isVisible()


def test_it_bears_whatever_a_list_may_hold(ask: Any, qtbot: QtBot) -> None:
    card = UpdateCard(ask)
    qtbot.addWidget(card)
    card.resize(500, 400)
    card.show()
    wild = UpdateOffer(
        version="999999.999999.999999.999999rc9999",
        date="9999-12-31",
        notes={"en": ["<b>bold</b> " + "x" * 280] * 20},
        page="https://example.org/" + "y" * 1900,
    )
    card.show_update(replaced(scenes()["there"], offer=wild, sentence="w" * 900))
    QApplication.processEvents()
    assert "<b>bold</b>" in texts(card)
    wide = [
        one for one in card.findChildren(QLabel) if one.isVisible() and one.minimumSizeHint().width() > 4000
    ]
    assert not wide


def replaced(one: Any, **fields: object) -> Any:
    return msgspec.structs.replace(one, **fields)


def test_the_page_opens_in_the_browser(ask: Any, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    pages: list[str] = []
    monkeypatch.setattr(updates.QDesktopServices, "openUrl", lambda url: pages.append(url.toString()))
    card = UpdateCard(ask)
    qtbot.addWidget(card)
    card.show()
    card.show_update(scenes()["there"])
    shown(card)["Open its page"].click()
    assert pages == ["https://example.org/shoal"]
    card.show_update(replaced(scenes()["there"], offer=replaced(OFFER, page="file:///etc/passwd")))
    assert list(shown(card)) == ["Check now"]
