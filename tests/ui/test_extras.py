"""What makes a person keep the window open: the fish, exports; words and units of settings."""

from __future__ import annotations

import re
import time
from datetime import datetime
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QSpinBox
from pytestqt.qtbot import QtBot

from app.node.record.reasons import Reason
from app.node.rules.preferences import SETTINGS as RULES
from app.ui.frame.frame import Actions
from app.ui.overview.fish import Fish, describe
from app.ui.process.models import export_message
from app.ui.settings.editors import editor
from app.ui.theme import Theme
from app.ui.view import words
from app.ui.view.view import NodeStatus, Step, View
from tests.ui import views

NOW = time.time()
change = msgspec.structs.replace


# ---- the fish


def test_the_fish_of_a_view_is_told_in_words_and_opens_the_skills(
    qtbot: QtBot, light: Theme, actions: Actions, asked: list[object]
) -> None:
    assert "grows once" in describe(View())
    fish = Fish(light)
    fish.clicked.connect(lambda: actions.go("skills"))
    qtbot.addWidget(fish)
    fish.show_view(views.learning())
    assert fish.accessibleName() and re.search(r"\d+ of 100 new puzzles", fish.accessibleDescription())
    qtbot.keyClick(fish, Qt.Key.Key_Return)
    assert asked[-1] == "skills"


# ---- export


def test_an_export_says_the_one_thing_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert export_message("/tmp/x", "") == "Exported to /tmp/x"
    assert "ollama create x -f /tmp/x/Modelfile" in export_message(
        "/tmp/x", "ollama create x -f /tmp/x/Modelfile"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    studio = tmp_path / ".lmstudio" / "models"
    studio.mkdir(parents=True)
    assert (
        export_message(str(studio / "shoal" / "minnow-20"), "ollama …")
        == "It's in LM Studio now: pick minnow-20 there."
    )


# ---- words of elsewhere


@pytest.mark.parametrize(
    ("watts", "device", "said"),
    [
        (0.0, "CPU", ""),
        (2.2, "CPU", "Etwa 2,2 W im Moment (geschätzt)."),
        (14.0, "CPU", "Etwa 14 W im Moment (geschätzt)."),
        (14.0, "NVIDIA L4", ""),
    ],
)
def test_power_in_the_words_and_numbers_of_the_language(
    german: None, watts: float, device: str, said: str
) -> None:
    view = views.learning(ruling=change(views.ruling(Reason.RUNNING), watts=watts))
    assert view.engine is not None
    assert words.power(change(view, engine=change(view.engine, device=device))) == said


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [("disk_cap_gb", 3, "3 GB"), ("disk_cap_gb", 0, "No limit"), ("idle_s", 240, "4 min")],
)
def test_a_value_of_elsewhere_is_shown_in_its_own_unit(
    qtbot: QtBot, light: Theme, key: str, value: int, said: str
) -> None:
    setting = next(one for one in RULES if one.key == key)
    made = editor(light, setting, setting.label, value, lambda _: None)
    qtbot.addWidget(made.widget)
    assert isinstance(made.widget, QComboBox) and made.widget.currentText() == said


def test_a_number_is_written_with_its_unit(qtbot: QtBot, light: Theme) -> None:
    setting, put = next(one for one in RULES if one.key == "temperature_limit_c"), list[object]()
    made = editor(light, setting, setting.label, 90, put.append)
    qtbot.addWidget(made.widget)
    assert isinstance(made.widget, QSpinBox)
    made.widget.selectAll()
    qtbot.keyClicks(made.widget, "82\r")
    assert put == [82] and made.widget.text() == "82 °C"


@pytest.mark.parametrize(("day", "said"), [(24, "Di. 00:00"), (1, "1. Dezember")])
def test_the_hours_say_when_it_goes_on_in_the_language_of_the_person(german: None, day: int, said: str) -> None:
    now = datetime(2026, 11, 23, 12).timestamp()
    until = datetime(2026, 12 if day == 1 else 11, day).timestamp()
    ruling = change(views.ruling(Reason.OUTSIDE_HOURS, until="what the node wrote"), until=until)
    shown = words.reason(views.learning(state=NodeStatus.WAITING, ruling=ruling), now)
    assert shown == f"Außerhalb deiner Zeiten. Beginnt {said}."


def test_a_node_that_waits_for_room_on_the_disk_says_what_helps(german: None) -> None:
    view = change(views.learning(), step=Step.NO_ROOM)
    assert words.step_line(view) == "wartet auf Platz auf der Festplatte"
    assert words.reason(view, 0.0).startswith("Die Festplatte ist voll: mach Platz")
