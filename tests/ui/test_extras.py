"""What makes a person keep the window open: the fish, what next, exports; words and units of settings."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import QCoreApplication, QLocale, Qt, QTranslator
from PySide6.QtWidgets import QComboBox, QSpinBox
from pytestqt.qtbot import QtBot

from app.learning.flat import CURVE_POINTS
from app.node.record.reasons import Reason
from app.node.record.records import LogEntry, Probe
from app.node.rules.preferences import SETTINGS as RULES
from app.ui.frame.frame import Actions
from app.ui.language import translating
from app.ui.models.control import export_message
from app.ui.overview import what_next
from app.ui.overview.fish import Fish, describe, make_fish
from app.ui.overview.what_next import NextCard
from app.ui.settings.editors import editor
from app.ui.theme import Theme
from app.ui.view import words
from app.ui.view.view import NodeStatus, Step, View
from tests.ui import views
from tests.ui.chat.test_tryit import press, texts

NOW = time.time()
change = msgspec.structs.replace


def flat_curve(rise: float = 0.0) -> tuple[Probe, ...]:
    return tuple(
        Probe(round=10 * at, share=0.5 + rise * at / CURVE_POINTS, stderr=0.03, at=NOW)
        for at in range(CURVE_POINTS)
    )


@pytest.fixture
def german(qapp: QCoreApplication) -> Iterator[None]:
    before, translator = QLocale(), QTranslator()
    assert translator.load(str(translating.FOLDER / "shoal_de.qm"))
    qapp.installTranslator(translator)
    QLocale.setDefault(QLocale("de"))
    yield
    QLocale.setDefault(before)
    qapp.removeTranslator(translator)


# ---- the fish


def test_a_fish_grows_with_every_single_thing_and_never_by_anything_else() -> None:
    plain = make_fish(0.3, 2)
    assert make_fish(0.4, 2).length > plain.length and make_fish(0.4, 2).stripes == plain.stripes
    assert make_fish(0.3, 3).stripes > plain.stripes
    for share in (None, 0.0, 0.5, 1.0, 7.0):
        assert 0.4 < make_fish(share, 999).length <= 1.0


def test_the_fish_of_a_view_is_told_in_words_and_opens_the_skills(
    qtbot: QtBot, light: Theme, actions: Actions, asked: list[object]
) -> None:
    assert "grows once" in describe(View())
    fish = Fish(light, lambda: actions.go("skills"))
    qtbot.addWidget(fish)
    fish.show_view(views.learning())
    assert fish.accessibleName() and re.search(r"\d+ of 100 new puzzles", fish.accessibleDescription())
    qtbot.keyClick(fish, Qt.Key.Key_Return)
    assert asked[-1] == "skills"


def test_a_model_that_can_more_is_drawn_larger(light: Theme, qtbot: QtBot) -> None:
    def inked(view: View) -> int:
        fish = Fish(light, lambda: None)
        qtbot.addWidget(fish)
        fish.show_view(view)
        image = fish.grab().toImage()
        own = light.colour("own").hue()
        places = ((x, y) for x in range(image.width()) for y in range(image.height()))
        return sum(
            abs(image.pixelColor(*at).hue() - own) < 12 and image.pixelColor(*at).saturation() > 150
            for at in places
        )

    young = change(views.learning(), curve=views.learning().curve[:1])
    assert inked(views.learning()) > 1.1 * inked(young) > 100


# ---- what next


def test_what_next_comes_when_the_curve_is_flat_and_not_before(
    qtbot: QtBot, light: Theme, actions: Actions, asked: list[object]
) -> None:
    asks: list[str] = []
    actions = change_actions(actions, harder=lambda: asks.append("harder"))
    made = NextCard(light, actions)
    qtbot.addWidget(made)
    view = change(views.learning(models=views.holdings()), curve=flat_curve(rise=0.3))
    made.show_view(view)
    assert made.isHidden(), "it still rises"
    sentence = "Nearly every answer was right. It gets harder puzzles, a level up."
    told = (LogEntry(at=NOW, round=60, kind="flat", sentence=sentence),)
    flat = change(view, curve=flat_curve(), happenings=told)
    made.show_view(flat)
    assert not made.isHidden()
    said = texts(made)
    assert "flat for 70 rounds" in said and "Nearly every answer was right." in said
    assert "SmolLM2 135M fits here: " in said
    made.resize(700, made.sizeHint().height())
    made.show()
    made.grab()
    assert made._larger.toolTip() == "", "in a small window all of it is read"
    press(qtbot, made, "Harder puzzles")
    made.show_view(flat)
    assert asks == ["harder"] and "a level harder" in texts(made)
    assert not made._harder.isVisible(), "said, and not asked again"
    made.show_view(change(flat, safe_round=flat.safe_round + 1))
    assert made.isHidden(), "the next round has harder ones"
    later = tuple(change(one, round=one.round + what_next.AGAIN) for one in flat_curve())
    made.show_view(change(flat, curve=later))
    assert not made.isHidden()
    press(qtbot, made, "Let it rest")
    assert asked[-1] == "pause"


def change_actions(actions: Actions, **more: Any) -> Actions:
    from dataclasses import replace

    return replace(actions, **more)


def test_what_next_offers_others_only_to_one_that_is_alone(
    qtbot: QtBot, light: Theme, actions: Actions, asked: list[object]
) -> None:
    made = NextCard(light, actions)
    qtbot.addWidget(made)
    made.show_view(change(views.learning(), curve=flat_curve(), solo=False))
    assert made._others.isHidden()
    made.show_view(change(views.learning(), curve=flat_curve(), solo=True))
    made._others.click()
    assert asked[-1] == ("learn", "others")


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
