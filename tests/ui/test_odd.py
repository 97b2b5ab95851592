"""Days on which something is odd: every page says something sensible about it."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.node.record.errors import disk_full_sentence
from app.node.record.reasons import Reason
from app.node.record.records import Probe
from app.node.record.snapshot import SwarmView
from app.ui.process.node import problem
from app.ui.shell.window import MainWindow
from app.ui.view.view import NodeStatus, View
from tests.ui import views
from tests.ui.drawing import texts

ROOT = Path(__file__).parents[2]
HOUR = 3600
LONG = "an-extraordinarily-long-name-that-nobody-would-choose-" * 4


def failed(sentence: str) -> View:
    said = problem(sentence)
    return views.learning(state=NodeStatus.FAILED, ruling=None, step=None, problem=said, reason=said.sentence)


def slept(hours: float) -> View:
    """The lid was closed in the middle of a round: the last word of the node is that old."""
    past = views.NOW - hours * HOUR
    curve = tuple(Probe(round=at, share=0.4, stderr=0.03, at=past - 60 + at) for at in (0, 10))
    swarm = views.swarm(3, connected=False, sentence="The connection was lost. Next try in 4 s.")
    return views.learning(solo=False, swarm=swarm, step_since=past, safe_at=past, curve=curve, left_s=1.0)


SCENES: dict[str, tuple[View, dict[str, tuple[str, ...]]]] = {
    "no history": (
        views.msgspec.structs.replace(
            views.learning(0), curve=(), rounds=(), runs=(), happenings=(), groups=(), families=(), safe_at=None
        ),
        {"history": ("Nothing has happened yet",), "live": (), "skills": ()},
    ),
    "no disk space": (
        failed(disk_full_sentence(Path("/home/ada/.local/share/shoal"))),
        {"overview": ("is full", "Free up some space or choose another --home"), "history": ("160 rows",)},
    ),
    "a node that ends at once": (
        failed(""),
        {
            "overview": ("keeps crashing", "look at the log in Settings"),
            "history": ("160 rows",),
        },
    ),
    "no peers": (
        views.learning(solo=False, swarm=views.swarm(0, invite="shoal://join/x")),
        {"swarm": ("No one else is here yet",), "privacy": ("shoal.example.org",)},
    ),
    "peers that sent nothing": (
        views.learning(solo=False, swarm=views.swarm(0, online=3)),
        {"swarm": ("3 others are online",)},
    ),
    "5,000 peers": (views.together(5000), {"swarm": ("5\u2009000 peers",)}),
    "no relay": (
        views.learning(solo=False, swarm=SwarmView(sentence="No relay answers. Next try in 40 s.")),
        {"swarm": ("No relay answers.",), "privacy": ("Nothing right now", "No relay answers.")},
    ),
    "asleep for a night": (
        slept(9),
        {"overview": (), "privacy": ("Nothing right now", "Next try in 4 s.")},
    ),
    "a clock that was put forward ten years": (slept(10 * 365 * 24), {"overview": ()}),
    "a clock that was put back ten years": (
        slept(-10 * 365 * 24),
        {"overview": (), "history": ("160 rows",)},
    ),
    "a snooze that ended while it slept": (
        views.learning(
            state=NodeStatus.PAUSED,
            step=None,
            ruling=views.ruling(Reason.SNOOZED, until="Sat 22:00"),
            until=views.NOW - 5 * HOUR,
        ),
        {"overview": ("Snoozed by you until Sat 22:00.",)},
    ),
    "a restart that should have been": (
        views.learning(
            state=NodeStatus.WAITING, step=None, ruling=None, reason="Learning crashed", until=views.NOW - HOUR
        ),
        {"overview": ("Learning crashed. It restarts in 0 s.",)},
    ),
    "long names": (
        views.learning(model=LONG, recipe=LONG, home=f"/{LONG}/{LONG}", engine=None),
        {"settings": (), "privacy": ("Nothing",)},
    ),
}


@pytest.mark.parametrize("scene", list(SCENES))
def test_every_page_says_something_sensible(qtbot: QtBot, window: MainWindow, scene: str) -> None:
    view, expected = SCENES[scene]
    window.resize(1024, 640)
    for page in window._makers if scene == "long names" else ("overview", *expected):
        window.show_view(view)
        window.go(page)
        QApplication.processEvents()
        said = texts(window)
        for wanted in expected.get(page, ()):
            assert wanted in said, f"{page}: {said}"
        for nonsense in ("None", "nan", "-1 ", "inf", "{", "1970", "Traceback"):
            shown = "\n".join(line for line in said.splitlines() if not line.startswith('{"t":'))
            assert nonsense not in shown, f"{page} says {nonsense}: {shown}"
        assert not any(line.lstrip().startswith("-") and line.endswith(" s") for line in said.splitlines())
        area = window._pages[page]
        qtbot.waitUntil(lambda area=area: area.widget().width() <= area.viewport().width(), timeout=30_000)
