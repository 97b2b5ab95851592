"""The race on Try it, with a small program in the place of the model's process."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat import messages
from app.ui.chat.page import TryIt
from app.ui.chat.process import Chatting
from app.ui.fish import motion
from app.ui.fish.track import FRAME_MS, LAP_FRAMES
from app.ui.frame.frame import Actions
from app.ui.process.child import Child
from app.ui.theme import Theme
from app.ui.view.view import View
from tests.ui.chat.test_tryit import PATIENCE_MS, press, texts

RACER = """
import json, sys
engine = dict(name="torch", device="CPU", dtype="float32", model="m", parameters=1, trainable=1, threads=1)
engine |= dict(memory_budget_mb=1, talks=True)
def say(kind, number, **what):
    print(json.dumps(dict(type=kind, number=number, **what)), flush=True)
say("opened", 0, model="talker", engine=engine, learned=20, levels={"gcd": 1})
for line in sys.stdin:
    asked = json.loads(line)
    number = asked["number"]
    if asked["type"] == "race":
        where = dict(family="gcd", level=0, seed=5, index=0)
        for place in range(asked["puzzles"]):
            say("lap", number, place=place, puzzles=asked["puzzles"], coordinates=where, title="Sums",
                text=f"What is {place} + 1?", learned=20, before=dict(text="#0\\u202e", solved=place % 5 == 0),
                after=dict(text=f"#{place + 1}", solved=place % 5 < 3))
    say("done", number)
"""


@pytest.fixture
def page(qtbot: QtBot, light: Theme, actions: Actions, tmp_path: Path) -> Iterator[TryIt]:
    file = tmp_path / "chat.py"
    file.write_text(textwrap.dedent(RACER))
    made = TryIt(light, actions, Chatting(actions.choices, Child(messages.MAX_LINE, [str(file)])))
    qtbot.addWidget(made)
    made.resize(968, 780)
    made.show_view(View(home=str(tmp_path)))
    made.show()
    yield made
    made.close_down()


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """What the system says of motion."""

    def say(on: bool) -> None:
        monkeypatch.setattr(motion.system(), "still", on)

    return say


def test_a_race_runs_puzzle_by_puzzle_and_says_its_score_with_the_error(
    qtbot: QtBot, page: TryIt, still: Callable[[bool], None]
) -> None:
    still(False)
    press(qtbot, page, "Race 20 puzzles")
    assert "Nothing asked yet" not in texts(page)
    race = page._race
    assert race is not None
    seen: set[int] = set()
    race.track.looked.connect(lambda at: seen.add(len(race.track.laps)))
    qtbot.waitUntil(lambda: "8 before" in texts(page) or "4 before" in texts(page), timeout=PATIENCE_MS)
    assert seen == set(range(1, 21)), "one after another"
    assert 2.0 <= 20 * LAP_FRAMES * FRAME_MS / 1000 <= 3.5, "twenty in about three seconds"
    assert "Your model solves 12 of 20 now, 4 before: +8 ± 2.2." in texts(page)
    assert "it really learned" in texts(page) and "After 20 rounds" in str(race.track._names)
    assert not race.track.frames.timer.isActive(), "and then nothing moves"

    race.track.setFocus()
    race.track.look(1)
    assert "only After solved it" in texts(page) and "Sums: What is 1 + 1?" in texts(page)
    qtbot.keyClick(race.track, Qt.Key.Key_Left)
    assert "both solved it" in texts(page), "arrow keys read single puzzles"
    assert "before solved 4, after solved 12, of 20" in race.track.accessibleName()
    assert "Puzzle 1: Sums, both solved it" in race.track.accessibleDescription()
    assert "\u202e" not in texts(page)

    press(qtbot, page, "Close")
    assert page._race is None and "Nothing asked yet" in texts(page)


@pytest.mark.parametrize("how", ["the system", "the setting"])
def test_without_motion_a_race_stands_still_and_says_the_same(
    qtbot: QtBot, page: TryIt, still: Callable[[bool], None], actions: Actions, how: str
) -> None:
    still(how == "the system")
    if how == "the setting":
        actions.choices.put("motion", "still")
    page.race()
    assert page._race is not None
    qtbot.waitUntil(lambda: "12 of 20 now" in texts(page), timeout=PATIENCE_MS)
    assert not page._race.track.frames.timer.isActive() and page._race.track._frame == 0


def test_a_race_that_nobody_watches_does_not_move(
    qtbot: QtBot, page: TryIt, still: Callable[[bool], None]
) -> None:
    still(False)
    page.race()
    QApplication.processEvents()
    assert page._race is not None and page._race.track.frames.timer.isActive()
    page.hide()
    assert not page._race.track.frames.timer.isActive()
    qtbot.waitUntil(lambda: len(page._race.track.laps) == 20, timeout=PATIENCE_MS)  # type: ignore[union-attr]
    qtbot.waitUntil(lambda: not page._racing, timeout=PATIENCE_MS)
    page.show()
    assert "12 of 20 now" in texts(page)
