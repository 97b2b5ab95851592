"""The swarm as water: everything it shows can be told, it moves only while seen, and it can be turned off."""

from __future__ import annotations

import itertools
import time

import msgspec
import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.node.record.snapshot import Peer
from app.swarm.identity.names import name
from app.ui.fish import motion
from app.ui.fish.places import places
from app.ui.fish.water import MOST, Water
from app.ui.frame.frame import Actions
from app.ui.swarm.page import SwarmPage, words_of
from app.ui.theme import Theme
from app.ui.view.growth import Fish
from app.ui.view.view import View
from tests.ui import views

NOW = time.time()
PEERS = tuple(
    Peer(
        name=name(bytes([n]) * 32),
        model="starter",
        seen_at=NOW - 60 * n,
        groups=n,
        families=("gcd",),
        since=NOW - 900,
    )
    for n in range(1, 30)
)


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that was not asked for less motion."""
    monkeypatch.setattr(motion.system(), "still", False)


def water(qtbot: QtBot, theme: Theme, actions: Actions) -> Water:
    made = Water(theme, actions.choices)
    qtbot.addWidget(made)
    made.resize(860, 232)
    made.show()
    made.show_peers(PEERS, "fresh-grebe-0308", Fish(length=0.7, stripes=2), NOW)
    return made


def swarm(**changes: object) -> View:
    view = views.together()
    assert view.swarm is not None
    return msgspec.structs.replace(view, swarm=msgspec.structs.replace(view.swarm, peers=PEERS, **changes))


@pytest.mark.parametrize("count", range(1, MOST + 1))
def test_fish_do_not_lie_on_each_other(count: int) -> None:
    for one, other in itertools.combinations(places(count), 2):
        assert abs(one[0] - other[0]) * 860 > 64 or abs(one[1] - other[1]) * 160 > 48


def test_arrow_keys_go_from_peer_to_peer_and_say_who_it_is(
    qtbot: QtBot, light: Theme, actions: Actions
) -> None:
    page = SwarmPage(light, actions)
    qtbot.addWidget(page)
    page.show_view(swarm())
    said: list[Peer | None] = []
    page._water.chosen.connect(said.append)
    for _ in range(MOST + 1):
        QTest.keyClick(page._water, Qt.Key.Key_Right)
    assert said[:MOST] == page._water.peers and said[MOST] == said[0]
    assert {peer.name for peer in page._water.peers} == {peer.name for peer in PEERS[-MOST:]}
    assert page._water.accessibleDescription() == page._who.text() == words_of(said[0], time.time())
    QTest.keyClick(page._water, Qt.Key.Key_Escape)
    assert said[-1] is None and "arrow keys" in page._water.accessibleName().lower()


def test_a_pointer_on_a_fish_tells_of_it(qtbot: QtBot, light: Theme, actions: Actions) -> None:
    made = water(qtbot, light, actions)
    for at, one in enumerate(made._swimmers):
        middle = made._middle(one, False)
        made.mouseMoveEvent(_moved(middle.x(), middle.y()))
        assert made._at == at


def test_it_moves_only_while_seen_and_where_motion_is_wanted(
    qtbot: QtBot, light: Theme, actions: Actions, moving: None
) -> None:
    made = water(qtbot, light, actions)
    assert made.frames.timer.isActive()
    made.hide()
    assert not made.frames.timer.isActive()
    made.show()
    assert made.frames.timer.isActive()
    actions.choices.put("motion", "still")
    made.frames.settle()
    assert not made.frames.timer.isActive()
    before = made.grab().toImage()
    made._frame += 40
    assert made.grab().toImage() == before  # still, and not only slower
    made.learned_from([PEERS[-1].name])
    assert made.grab().toImage() != before  # the way of the answer is drawn


def test_an_answer_swims_over_and_is_gone(qtbot: QtBot, light: Theme, actions: Actions, moving: None) -> None:
    made = water(qtbot, light, actions)
    made.learned_from([PEERS[-1].name, "nobody-here-0000"])
    assert len(made._flights) == 1
    for _ in range(40):
        made._step()
        made.grab()
    assert not made._flights


def test_water_or_list_is_one_setting(
    qtbot: QtBot, light: Theme, actions: Actions, asked: list[object]
) -> None:
    page = SwarmPage(light, actions)
    qtbot.addWidget(page)
    page.show_view(swarm())
    assert page._peers.currentIndex() == 2
    page._as._group.button(1).click()
    assert asked[-1] == ("water", False) and page._peers.currentIndex() == 1
    assert not page._water.frames.timer.isActive()
    page.show_view(swarm())
    assert page._peers.currentIndex() == 1


def test_how_many_models_own_answers_helped_is_said_unless_thanks_are_off(
    qtbot: QtBot, light: Theme, actions: Actions
) -> None:
    page = SwarmPage(light, actions)
    qtbot.addWidget(page)
    view = swarm(helped=12, helped_with=30)
    page.show_view(view)
    assert "12" in page._helped.text() and not page._helped.isHidden()
    page.show_view(msgspec.structs.replace(view, rules={"receipts": False}))
    assert page._helped.isHidden()


def _moved(x: float, y: float) -> QMouseEvent:
    at = QPointF(x, y)
    none = Qt.MouseButton.NoButton
    return QMouseEvent(QEvent.Type.MouseMove, at, at, none, none, Qt.KeyboardModifier.NoModifier)
