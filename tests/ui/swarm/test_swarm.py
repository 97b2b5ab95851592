"""Swarm: who is there, and what own answers did for others."""

from __future__ import annotations

import time
from collections.abc import Callable
from io import StringIO
from typing import Any

import msgspec
from PySide6.QtWidgets import QApplication, QPushButton
from rich.console import Console

from app.node.record.snapshot import SwarmView
from app.node.terminal.terminal import swarm_panel
from app.swarm.client.status import Peer
from app.swarm.identity.identity import node_name
from app.swarm.intake.buffer import DOUBTED
from app.ui.privacy.page import shared_summary
from app.ui.swarm.page import SwarmPage, learned_from, why_nothing
from app.ui.view.view import View
from tests.ui import views
from tests.ui.drawing import shown, texts

NOW = time.time()
Opened = Callable[..., Any]
PEERS = tuple(
    Peer(
        name=node_name(bytes([n]) * 32),
        model="starter",
        seen_at=NOW - 60 * n,
        groups=n,
        families=("gcd",),
        since=NOW - 900,
    )
    for n in range(1, 30)
)


def swarm(**changes: object) -> View:
    view = views.together()
    assert view.swarm is not None
    return msgspec.structs.replace(view, swarm=msgspec.structs.replace(view.swarm, peers=PEERS, **changes))


def test_peers_are_a_list_that_can_be_searched(opened: Opened) -> None:
    page = opened(SwarmPage)
    page.show_view(swarm())
    assert page._peers.currentIndex() == 1 and not page._find.isHidden()
    assert page._count.text() == f"{len(PEERS)} peers shared answers"
    page.show_view(swarm(refused={"seen": 1591, "stale": 2}))
    assert page._stats[2]._meaning.text() == "2 turned away", "what came twice is not"


def test_from_whom_it_learned_and_why_not() -> None:
    used, unused = Peer(name="a", learned=12), Peer(name="b", groups=54, unused=DOUBTED)
    assert (learned_from(used), learned_from(unused)) == ("12", "0: They disagree too often.")
    assert why_nothing(SwarmView(peers=(used, unused))) == DOUBTED
    assert why_nothing(SwarmView(refused={"of another version": 2, "stale": 3})) == "It is too old."
    assert why_nothing(SwarmView(refused={"of another version": 2})) == why_nothing(SwarmView()) == ""


def test_what_left_is_one_figure_everywhere(opened: Opened) -> None:
    view = swarm(bytes_per_hour=68_049)
    assert view.swarm is not None
    page = opened(SwarmPage)
    page.show_view(view)
    drawn = Console(width=90, file=StringIO())
    drawn.print(swarm_panel(view.swarm, 90))
    assert page._stats[3]._figure.text() == "68.0 kB" and "68.0 kB in the last hour" in shared_summary(view)[0]
    assert isinstance(drawn.file, StringIO) and "sent 68.0 kB in the last hour" in drawn.file.getvalue()


def test_the_end_of_a_lesson_keeps_its_card_and_the_ways_out(opened: Opened, asked: list[object]) -> None:
    page = opened(SwarmPage)
    ended = swarm(in_class=True, lesson_over=True, connected=False, sentence="The lesson has ended.")
    page.show_view(ended)
    assert "The lesson has ended." in texts(page) and "Not connected" not in texts(page)
    shown(page)["Join again"].click()
    shown(page)["Leave the class"].click()
    assert asked == ["rejoin", "alone"]
    page.show_view(swarm(in_class=True, connected=False, sentence="No relay is running."))
    assert "Looking for your class" in texts(page) and "Join again" not in shown(page)


def test_how_many_models_own_answers_helped_is_said_unless_thanks_are_off(opened: Opened) -> None:
    page = opened(SwarmPage)
    view = swarm(helped=12)
    page.show_view(view)
    assert "12" in page._helped.text() and not page._helped.isHidden()
    page.show_view(msgspec.structs.replace(view, rules={"receipts": False}))
    assert page._helped.isHidden()
    assert page._taught.isHidden()
    page.show_view(swarm(taught={"gcd": 4, "lcm": 1, "dice": 2, "products": 1, "maze": 1}, pupils=5))
    assert page._taught.text() == (
        "5 models say yours taught them: Greatest common divisor (4), Dice (2), Least common multiple (1), "
        "2 other kinds."
    )


def test_a_class_is_left_by_one_button_and_models_bear_their_titles(
    opened: Opened, asked: list[object]
) -> None:
    page = opened(SwarmPage)
    page.show_view(swarm())
    shown(page)["Learn alone"].click()
    assert asked == ["alone"], "which ends no pause"
    assert "Learn alone" in shown(page) and "Leave the class" not in shown(page)
    assert page._table.model().index(0, 1).data() == "Starter"
    page.show_view(swarm(in_class=True))
    assert "Leave the class" in shown(page) and "Learn alone" not in shown(page)


def test_alone_everything_is_above_the_edge_of_a_small_screen_and_joining_presses_nothing_else(
    opened: Opened,
) -> None:
    page = opened(SwarmPage)
    page.resize(930, 640)
    page.show_view(views.learning())
    QApplication.processEvents()
    assert page.verticalScrollBar().maximum() == 0 and page._private.isVisible()
    heading = page._alone._state
    assert heading.text() == "Your model learns alone"
    page.show_view(views.learning(solo=False))
    assert heading.text() == "Your model learns with others", "the page Privacy says so, too"
    page._alone._address.setFocus()
    page.show_view(swarm())
    assert not isinstance(QApplication.focusWidget(), QPushButton)
