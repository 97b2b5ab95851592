"""What makes a person keep the window open: the fish, notes, the diary, what next, the card; and that each can
be turned off, stands still when asked, and has words."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import QCoreApplication, QLocale, Qt, QTranslator
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QComboBox, QSpinBox
from pytestqt.qtbot import QtBot

from app.desktop import choose
from app.desktop.facts import SourceError
from app.desktop.linux import Bus
from app.learning.flat import CURVE_POINTS
from app.node.history.milestones import Milestone, MilestoneKind
from app.node.record.reasons import Reason
from app.node.record.records import LogEntry, Probe, Run
from app.node.record.snapshot import Energy
from app.node.rules.preferences import SETTINGS as RULES
from app.ui.frame.frame import Actions
from app.ui.language import translating
from app.ui.models.control import export_message
from app.ui.overview import fish as fish_pond
from app.ui.overview import note
from app.ui.overview.fish import Pond, describe, make_fish
from app.ui.overview.note import NextCard
from app.ui.overview.page import Overview
from app.ui.pages.history import DIARY, HistoryPage
from app.ui.settings.editors import editor
from app.ui.settings.page import SettingsPage
from app.ui.theme import Theme
from app.ui.view import words
from app.ui.view.settings import Choices, DismissedNotes
from app.ui.view.view import NodeStatus, Step, View
from tests.ui import views
from tests.ui.chat.test_tryit import press, texts

NOW = time.time()
change = msgspec.structs.replace


def reached(kind: MilestoneKind, round: int = 9, ago: float = 60.0, **more: Any) -> Milestone:
    return Milestone(kind=kind, round=round, at=NOW - ago, family="gcd", **more)


def flat_curve(rise: float = 0.0) -> tuple[Probe, ...]:
    return tuple(
        Probe(round=10 * at, share=0.5 + rise * at / CURVE_POINTS, stderr=0.03, at=NOW)
        for at in range(CURVE_POINTS)
    )


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fish_pond.motion_preference(), "still", False)


@pytest.fixture
def overview(qtbot: QtBot, light: Theme, actions: Actions) -> Overview:
    made = Overview(light, actions)
    qtbot.addWidget(made)
    made.resize(968, 780)
    made.show()
    return made


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
    plain = make_fish(0.3, 2, 2)
    assert make_fish(0.4, 2, 2).length > plain.length and make_fish(0.4, 2, 2).fins == plain.fins
    assert make_fish(0.3, 3, 2).fins > plain.fins and make_fish(0.3, 2, 3).stripes > plain.stripes
    assert make_fish(0.3, 2, 2) == plain
    for share in (None, 0.0, 0.5, 1.0, 7.0):
        assert 0.4 < make_fish(share, 999, 999).length <= 1.0


def test_the_fish_of_a_view_is_told_in_words() -> None:
    view = views.learning()
    assert re.search(r"\d+ of 100 new puzzles", describe(view))
    assert "grows once" in describe(View())


def test_the_pond_moves_only_while_it_learns_and_somebody_sees_it(
    qtbot: QtBot, light: Theme, actions: Actions, asked: list[object], moving: None
) -> None:
    pond = Pond(light, actions.choices, lambda: actions.go("skills"))
    qtbot.addWidget(pond)
    pond.show_view(views.learning())
    assert not pond.timer.isActive(), "nobody sees it"
    pond.show()
    assert pond.timer.isActive()
    qtbot.waitUntil(lambda: pond._frame > 1)
    pond.show_view(change(views.learning(), state=NodeStatus.PAUSED))
    assert not pond.timer.isActive(), "it rests while the model rests"
    pond.show_view(views.learning())
    pond.hide()
    assert not pond.timer.isActive()
    actions.choices.put("motion", "still")
    pond.show()
    assert not pond.timer.isActive(), "its owner asked for less motion"
    assert pond.accessibleName() and "new puzzles" in pond.accessibleDescription()
    qtbot.keyClick(pond, Qt.Key.Key_Return)
    assert asked[-1] == "skills"


def test_a_model_that_can_more_is_drawn_larger(light: Theme, actions: Actions, qtbot: QtBot) -> None:
    def inked(view: View) -> int:
        pond = Pond(light, actions.choices, lambda: None)
        qtbot.addWidget(pond)
        pond.show_view(view)
        image = pond.grab().toImage()
        own = light.colour("own").hue()
        places = ((x, y) for x in range(image.width()) for y in range(image.height()))
        return sum(
            abs(image.pixelColor(*at).hue() - own) < 12 and image.pixelColor(*at).saturation() > 150
            for at in places
        )

    young = change(views.learning(), curve=views.learning().curve[:1])
    assert inked(views.learning()) > 1.1 * inked(young) > 100


# ---- notes


def test_a_race_is_offered_once_at_round_twenty_of_a_new_model(tmp_path: Path) -> None:
    choices, seen = Choices(tmp_path), DismissedNotes()
    base = views.learning()

    def at(round: int) -> View:
        return change(base, rounds=(change(base.rounds[-1], round=round),), runs=(views_run(1000.0),))

    due = [round for round in range(1, 200) if note.race_due(at(round), seen, choices)]
    assert due == list(range(20, 60))
    assert not note.race_due(at(25), DismissedNotes(raced=note.training_id(at(25))), choices)
    over = change(at(25), runs=(views_run(2000.0),))
    assert note.race_due(over, DismissedNotes(raced=note.training_id(at(25))), choices), (
        "one that started over is new"
    )
    choices.put("race", False)
    assert not note.race_due(at(25), seen, choices)


def views_run(started: float) -> Run:
    return Run(run=1, started=started, ended=None, first_round=1, last_round=None, outcome=None, engine="torch")


def test_a_milestone_is_told_once_while_it_is_fresh(tmp_path: Path) -> None:
    choices = Choices(tmp_path)
    old, new = reached(MilestoneKind.LEVEL, ago=100.0, level=1), reached(MilestoneKind.HALF, ago=50.0)
    view = View(milestones=(old, new))
    assert note.milestone(view, DismissedNotes(), choices, NOW) == new
    assert note.milestone(view, DismissedNotes(told=old.at), choices, NOW) == new
    assert note.milestone(view, DismissedNotes(told=new.at), choices, NOW) is None
    assert note.milestone(view, DismissedNotes(), choices, NOW + note.FRESH_S) is None
    choices.put("notes", False)
    assert note.milestone(view, DismissedNotes(), choices, NOW) is None


def test_the_note_opens_the_very_answers_and_stays_away_then(
    qtbot: QtBot, overview: Overview, asked: list[object], actions: Actions
) -> None:
    view = change(
        views.learning(), milestones=(reached(MilestoneKind.FIRST, round=7, tried=16, peer="calm-otter"),)
    )
    overview.show_view(view)
    said = texts(overview)
    assert "Greatest common divisor: the first right answer, after 16 wrong ones." in said
    assert "It had seen answers of calm-otter before." in said
    press(qtbot, overview, "See the answers")
    assert asked[-1] == ("round", 7)
    overview.show_view(view)
    assert "first right answer" not in texts(overview)
    assert Choices(actions.choices._path.parent).memory.seen.told == view.milestones[0].at, "also next time"


# ---- the diary


def test_the_diary_opens_what_is_behind_it_and_can_be_told_to_a_friend(
    qtbot: QtBot, light: Theme, actions: Actions, asked: list[object]
) -> None:
    page = HistoryPage(light, actions)
    qtbot.addWidget(page)
    entries = (reached(MilestoneKind.LEVEL, round=4, level=2), reached(MilestoneKind.MEASURED_HALF, round=10))
    page.show_view(change(views.learning(), milestones=entries, model="Minnow"))
    page._which.choose(DIARY)
    page._choose(DIARY)
    page._tables[DIARY].opened.emit(entries[0])
    assert asked[-1] == ("round", 4)
    page._tables[DIARY].opened.emit(entries[1])
    assert asked[-1] == "skills", "a measurement keeps no answers"
    page._tell()
    copied = QGuiApplication.clipboard().text()
    assert "Minnow" in copied and "reached level 3" in copied and "half of what it never trained on" in copied
    assert "measured_half" in page.exported("json") and page.exported("csv").count("\n") == 3


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
    later = tuple(change(one, round=one.round + note.AGAIN) for one in flat_curve())
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


# ---- turned off, in one place


def test_each_has_its_switch_in_one_group(
    qtbot: QtBot, light: Theme, actions: Actions, overview: Overview
) -> None:
    page = SettingsPage(light, actions)
    qtbot.addWidget(page)
    groups = {line.key: frame for frame, line in page._lines}
    assert len({groups[key] for key in ("motion", "fish", "notes", "race")}) == 1

    view = change(views.learning(), milestones=(reached(MilestoneKind.HALF),))
    overview.show_view(view)
    assert overview._pond.isVisible() and overview._note.isVisible()
    for key in ("fish", "notes", "race"):
        actions.choices.put(key, False)
    overview.show_view(view)
    assert not overview._pond.isVisible() and not overview._note.isVisible()
    QApplication.processEvents()


class Desktop(Bus):
    """A session bus on which a portal answers what it is given."""

    def __init__(self, **values: object) -> None:
        super().__init__("SESSION")
        self.values = values

    def ask(self, service: object, method: str, signature: str | None = None, *arguments: object) -> object:
        key = str(arguments[1])
        if key not in self.values:
            raise SourceError("no such setting")
        return ("v", self.values[key])


@pytest.mark.parametrize(
    ("said", "still"),
    [
        ({}, False),
        ({"reduced-motion": 1}, True),
        ({"reduced-motion": 0, "enable-animations": True}, False),
        ({"enable-animations": False}, True),
        ({"AnimationDurationFactor": 0.0}, True),
        ({"AnimationDurationFactor": "0"}, True),
        ({"AnimationDurationFactor": 1.0}, False),
    ],
)
def test_the_system_is_asked_for_less_motion(said: dict[str, object], still: bool) -> None:
    assert choose.reduced_on_linux(Desktop(**said)) is still


def test_until_the_system_has_answered_nothing_moves(actions: Actions, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[Callable[[], None]] = []

    def thread(target: Callable[[], None], **_: object) -> Started:
        waits.append(target)
        return Started()

    monkeypatch.setattr(fish_pond.threading, "Thread", thread)
    asked = fish_pond.MotionPreference()
    assert asked.still
    monkeypatch.setattr(choose, "reduced_motion", lambda: False)
    waits[0]()
    assert not asked.still


class Started:
    def start(self) -> None:
        pass


@pytest.mark.parametrize(
    ("month_kwh", "watts", "measured", "said"),
    [
        (0.0004, 0.0, False, ""),
        (0.0, 2.2, False, "Etwa 2,2 W im Moment (geschätzt)."),
        (0.5, 0.01, False, "Etwa 0,500 kWh in diesem Monat (geschätzt)."),
        (12.0, 8.2, True, "8 W im Moment, 12,0 kWh in diesem Monat, gemessen."),
    ],
)
def test_energy_in_the_words_and_numbers_of_the_language(
    german: None, month_kwh: float, watts: float, measured: bool, said: str
) -> None:
    used = Energy(watts=watts, month_kwh=month_kwh, measured=measured)
    assert words.energy(views.learning(ruling=change(views.ruling(Reason.RUNNING), energy=used))) == said


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
