"""The race on Try it, with a small program in the place of the model's process."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from app.chat import messages
from app.chat.messages import RaceScore
from app.node.record.records import Probe
from app.ui.chat.control import ChatControl
from app.ui.chat.page import TryIt
from app.ui.chat.question import Side, measured, significance
from app.ui.frame.frame import Actions
from app.ui.process.job import Job
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
    made = TryIt(light, actions, ChatControl(actions.choices, Job(messages.MAX_LINE, [str(file)])))
    qtbot.addWidget(made)
    made.resize(968, 780)
    made.show_view(View(home=str(tmp_path)))
    made.show()
    yield made
    made.close_down()


def test_a_race_shows_every_puzzle_with_both_answers_and_its_score(qtbot: QtBot, page: TryIt) -> None:
    press(qtbot, page, "Race 20 puzzles")
    assert "Nothing asked yet" not in texts(page)
    race = page._race
    assert race is not None
    qtbot.waitUntil(lambda: "Your model solves" in texts(page), timeout=PATIENCE_MS)
    said = texts(page)
    assert "Your model solves 12 of 20 now, 4 before." in said
    assert "it really learned" in said and "After 20 rounds" in said
    wanted = [f"Sums: What is {place} + 1?" for place in range(20)]
    qtbot.waitUntil(lambda: all(text in texts(page) for text in wanted), timeout=PATIENCE_MS)  # laid out
    said = texts(page)
    assert (said.count("right"), said.count("wrong")) == (16, 24)
    names = [side.accessibleName() for side in race.findChildren(Side)]
    assert names[2:4] == ["Before: #0·, wrong", "After: #2, right"]
    assert "\u202e" not in said

    press(qtbot, page, "Close")
    assert page._race is None and "Nothing asked yet" in texts(page)


def test_a_race_of_the_model_before_is_not_shown_as_yours(qtbot: QtBot, page: TryIt) -> None:
    page.show_view(msgspec.structs.replace(page._view, model="starter"))
    page.race()
    qtbot.waitUntil(lambda: "12 of 20 now" in texts(page), timeout=PATIENCE_MS)
    page.show_view(msgspec.structs.replace(page._view, model="starter"))
    assert page._race is not None
    page.show_view(msgspec.structs.replace(page._view, model="HuggingFaceTB/SmolLM2-135M-Instruct"))
    assert page._race is None
    qtbot.waitUntil(lambda: "12 of 20 now" not in texts(page))


def test_twenty_puzzles_that_say_little_are_told_beside_what_was_measured_on_many() -> None:
    close = RaceScore(puzzles=20, before=5, after=10, won=5)
    assert "too few" in significance(close) and "chance" not in significance(close).lower()
    first = Probe(round=0, share=0.23, stderr=0.026, questions=256)
    later = Probe(round=90, share=0.47, stderr=0.031, questions=256)
    assert "256" in measured((first, later)) and "23 of 100 at the start, 47 now" in measured((first, later))
    assert "Too early" in measured((first, first)) and measured((first,)) == ""


def test_racing_again_begins_without_answers(qtbot: QtBot, page: TryIt) -> None:
    page.race()
    qtbot.waitUntil(lambda: "12 of 20 now" in texts(page), timeout=PATIENCE_MS)
    press(qtbot, page, "Race again")
    assert "Solved so far: 0 before, 0 after, of 0." in texts(page)
    qtbot.waitUntil(lambda: "12 of 20 now" in texts(page), timeout=PATIENCE_MS)
    assert page._race is not None and page._race.result.puzzles == 20
