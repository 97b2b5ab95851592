"""What each page says and asks for, view by view."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as changed
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAccessible, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QSpinBox,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.node.record.records import Probe, Round
from app.node.record.snapshot import FamilyView
from app.node.rules.preferences import SETTINGS as RULES
from app.sapo.families import FAMILIES
from app.sapo.families.family import FamilyKind
from app.swarm.invite.invite import parse
from app.swarm.wire.limits import LoggedMessage
from app.ui.charts.curve import Curve
from app.ui.charts.tile import Tile
from app.ui.frame.frame import Actions
from app.ui.overview.page import Overview
from app.ui.pages.history import HistoryPage
from app.ui.pages.manual import about
from app.ui.privacy.group import weight_sentence
from app.ui.privacy.live import SHOWN, Live
from app.ui.privacy.page import Privacy
from app.ui.settings.editors import HoursEditor
from app.ui.settings.page import SettingRow, SettingsPage
from app.ui.shell.window import MainWindow
from app.ui.skills.page import Skills
from app.ui.swarm.page import SwarmPage
from app.ui.theme import Theme
from app.ui.view import words
from app.ui.view.settings import SETTINGS
from app.ui.view.view import NodeStatus, Step, View
from app.ui.welcome.page import CompanyStep
from app.ui.widgets.selecting import Option, Segments, Switch
from tests.ui import views
from tests.ui.drawing import press, shown, texts

PAGES = ("overview", "live", "skills", "swarm", "history", "models", "tryit", "privacy", "settings", "help")
Opened = Callable[..., Any]


def test_there_are_these_pages(window: MainWindow) -> None:
    assert tuple(window._makers) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_every_page_bears_every_view(window: MainWindow, page: str) -> None:
    """One after the other; how a page begins with an odd one, tests/ui/test_odd.py shows."""
    window.go(page)
    for scene, view in views.odd().items():
        window.show_view(view)
        QApplication.processEvents()
        assert not window.grab().isNull(), scene


def test_the_overview_needs_no_scrolling_on_a_small_laptop(qtbot: QtBot, window: MainWindow) -> None:
    window.resize(1024, 640)
    window.show_view(views.together())
    window.go("overview")
    area = window._pages["overview"]
    qtbot.waitUntil(lambda: area.widget().height() <= area.viewport().height(), timeout=30_000)
    assert area.widget().width() == area.viewport().width()


def test_the_overview_tells_what_happens(qtbot: QtBot, opened: Opened, asked: list[object]) -> None:
    page = opened(Overview, View())
    press(qtbot, page, "Learn alone")
    assert asked == [("learn", "alone")]
    page.show_view(views.learning())
    said = texts(page)
    assert "answer 76 of 128, about 1 s" in said and "Round 161" in said and "of 100 since it started" in said
    page.show_view(views.failed())
    assert "Learning stopped" in texts(page) and "is full." in texts(page)
    curve = views.rising(10)
    page.show_view(views.learning(10, curve=(curve[0], changed(curve[0], round=10))))
    assert "too early to tell" in texts(page)


def test_a_pause_says_when_it_ends(qtbot: QtBot, opened: Opened, asked: list[object]) -> None:
    page = opened(Overview, views.odd()["snoozed"])
    assert "Sat 22:00." in texts(page)
    button = shown(page)["Resume"]
    button.setFocus()
    qtbot.keyClick(button, Qt.Key.Key_Space)
    assert shown(page)["Learn while I'm away"].isChecked(), "a pause ends, the wish stays"
    press(qtbot, page, "Learn while I'm away")
    assert asked == ["start", ("contribute", False)]
    page.show_view(views.odd()["at rest"])
    assert "Start learning" in shown(page)
    paused = views.odd()["paused"]
    rules = {**paused.rules, "contribute_when_idle": True, "idle_s": 180}
    page.show_view(changed(paused, rules=rules))
    assert "away for 3 min." in texts(page) and "Resume" in shown(page)
    press(qtbot, page, "Learn now anyway")
    assert asked[2:] == ["insist"]
    page.show_view(changed(paused, rules={**rules, "contribute_when_idle": False}))
    assert "away" not in texts(page._now._why) and "Learn now anyway" not in shown(page)


def test_a_first_look_counts_kinds_and_can_be_paused_skipped_and_cancelled(
    qtbot: QtBot, opened: Opened, asked: list[object]
) -> None:
    looking = views.odd()["placing"]
    page = opened(Overview, looking)
    assert "kind 7 of 27" in texts(page)
    assert (page._now._bar.value(), page._now._bar.maximum()) == (7, 27)
    for name in ("Start without it", "Pause", "Cancel"):
        press(qtbot, page, name)
    assert asked == ["skip", "pause", ("contribute", False)]
    page.show_view(views.learning())
    assert "Pause" in shown(page) and not {"Cancel", "Start without it"} & set(shown(page))
    page.show_view(changed(looking, safe_round=20))
    assert "After round 20" in texts(page) and "Pause" in shown(page)


def test_a_step_says_what_it_does_and_how_long_it_takes() -> None:
    view = views.learning(2, step=Step.LEARNING, round=1, done=2, total=12, left_s=75.0)
    assert words.step_line(view) == "learning from the answers, about 75 s"


def test_a_model_out_of_a_file_is_called_without_its_digest() -> None:
    assert words.model_name(views.learning(model="own.q4_1-b179c9523d0e")) == "own.q4_1"


@pytest.mark.parametrize(
    ("everyday", "said"), [(10.2, "as well as before"), (13.0, "losing everyday language")]
)
def test_skills_say_how_it_speaks(opened: Opened, everyday: float, said: str) -> None:
    last = Probe(round=9, share=0.5, stderr=0.03, everyday=everyday, everyday_before=10.0)
    page = opened(Skills, views.learning(curve=(last,)))
    assert said in texts(page)


def test_the_same_sentence_is_everywhere(window: MainWindow) -> None:
    for scene in ("paused", "snoozed", "in use", "finishing", "unknown reason"):
        view = views.odd()[scene]
        assert view.ruling is not None
        window.show_view(view)
        for part in (window._pages["overview"], window._sidebar):
            assert view.ruling.sentence in texts(part).splitlines(), scene


def test_switches_and_the_dial_change_the_rules(qtbot: QtBot, opened: Opened, asked: list[object]) -> None:
    page = opened(Overview, views.odd()["in use"])
    said = shown(page)
    assert said["Learn while I'm away"].isChecked() and not said["Also while I use this computer"].isChecked()
    for name in ("Also while I use this computer", "Quiet", "Learn while I'm away"):
        press(qtbot, page, name)
    assert asked == [("contribute_when_idle", False), ("dial", "quiet"), ("contribute", False)]


def test_every_rule_has_its_line_and_takes_only_what_can_be(opened: Opened, asked: list[object]) -> None:
    page = opened(SettingsPage)
    lines = {line.key: line for line in page.findChildren(SettingRow)}
    assert set(lines) == {setting.key for setting in (*RULES, *SETTINGS)}
    lines["idle_s"]._try(0)
    assert asked == [] and "from 1 to 86400" in texts(lines["idle_s"])
    apps = lines["serve_allows"].findChild(QLineEdit)
    apps.setText("doom")
    apps.editingFinished.emit()
    page.show_view(views.learning(rules={**views.DEFAULTS, "on_battery": True, "idle_s": 42, "cpu_limit": 60}))
    assert lines["on_battery"].findChild(Switch).isChecked()
    assert lines["idle_s"].findChild(QComboBox).currentText() == "42 s"
    assert lines["cpu_limit"].findChild(QSpinBox).text() == "60 %"
    assert asked == [("serve_allows", ["doom"])], "what comes from elsewhere is not sent back"
    also = lines["contribute_when_idle"].findChild(Switch)
    also.click()
    assert asked[-1] == ("contribute_when_idle", False) and also.isChecked(), "shown the other way round"
    lines["model"].findChild(QPushButton).click()
    assert asked[-1] == "models", "a model is chosen where its size and fit are shown"


def test_hours_are_any_time_never_or_from_to(qtbot: QtBot, opened: Opened, asked: list[object]) -> None:
    page = opened(SettingsPage)
    editor = next(line for line in page.findChildren(SettingRow) if line.key == "hours").findChild(HoursEditor)
    start, end = editor.start, editor.end
    assert start.currentText() == "Any time" and end.isHidden()
    start.setCurrentIndex(start.findText("22:00"))
    assert asked == [("hours", "22:00-06:00")] and end.currentText() == "06:00" and not end.isHidden()
    end.setCurrentIndex(end.findText("22:00"))
    assert asked[-1] == ("hours", "22:00-06:00"), "no hours at all are chosen as never"
    qtbot.keyClicks(start, "Never")
    assert asked[-1] == ("hours", "never") and end.isHidden()
    count = len(asked)
    page.show_view(views.learning(rules={**views.DEFAULTS, "hours": "17:45-00:00"}))
    assert (start.currentText(), end.currentText()) == ("17:45", "00:00") and len(asked) == count


def test_settings_are_found_by_words_that_are_not_on_them(
    qtbot: QtBot, opened: Opened, asked: list[object]
) -> None:
    page = opened(SettingsPage)
    page._find.setText("dark mode")
    QApplication.processEvents()
    (line,) = [line for line in page.findChildren(SettingRow) if line.isVisible()]
    press(qtbot, line, "Dark")
    assert asked == [("theme", "dark")] and page.ask.choices["theme"] == "dark"
    page._find.setText("xyzzy")
    assert "No such setting" in texts(page)


def test_screen_readers_hear_what_each_control_is(opened: Opened) -> None:
    """Qt tells a drop-down's choice as its name on Linux, so its label must say what it is."""
    role = QAccessible.Role
    seen: Counter[QAccessible.Role] = Counter()
    for line in opened(SettingsPage, views.learning()).findChildren(SettingRow):
        widget = line._editor.widget
        heard = QAccessible.queryAccessibleInterface(widget)
        seen[heard.role()] += 1
        if isinstance(widget, Segments):
            assert heard.role() == role.Grouping and heard.text(QAccessible.Text.Name)
            assert {heard.child(at).role() for at in range(heard.childCount())} == {role.RadioButton}
        elif isinstance(widget, QComboBox):
            labels = [other.text(QAccessible.Text.Name) for other, how in heard.relations()]
            assert heard.role() == role.ComboBox and widget.accessibleName() in labels
    assert seen[role.Grouping] >= 3 and seen[role.ComboBox] >= 2 and seen[role.CheckBox] >= 5


def in_sight(page: Live) -> list[Any]:
    return [card.group for card in page._feed.rows if card.isVisibleTo(page)]


def test_live_filters_and_keeps_what_is_read(opened: Opened) -> None:
    page = opened(Live, views.together())
    assert len(in_sight(page)) == SHOWN
    page._source.choose("peers")
    page._from_top()
    before = in_sight(page)
    assert before and all(group.peer for group in before)
    page.verticalScrollBar().setValue(100)
    more = views.learning(161, groups=(*views.groups(161, 3, peers=True), *views.together().groups))
    page.show_view(more)
    assert in_sight(page) == before and not page._feed.newer.isHidden()
    page._feed.newer.click()
    assert in_sight(page) != before and page._feed.newer.isHidden()
    page._family.setCurrentIndex(page._family.findData(before[0].family))
    assert {group.family for group in in_sight(page)} == {before[0].family}


def test_live_shows_one_round_and_finds_back_to_all(qtbot: QtBot, opened: Opened) -> None:
    view = views.learning()
    page = opened(Live, view)
    assert not page._only.isVisible()
    page.show_round(view.groups[-1].round)
    assert {group.round for group in in_sight(page)} == {view.groups[-1].round}
    page._only.click()
    assert len(in_sight(page)) == SHOWN and not page._only.isVisible()
    page.show_round(10**6)
    assert "These answers are gone" in texts(page)
    press(qtbot, page, "Show everything")
    assert len(in_sight(page)) == SHOWN


@pytest.mark.parametrize(
    ("right", "said"),
    [
        (7, "wrong, so each counts 7 times"),
        (3, "right, so each counts 1.7 times"),
        (4, "the same"),
        (8, "nothing"),
    ],
)
def test_live_says_in_words_how_much_answers_count(right: int, said: str) -> None:
    assert said in weight_sentence(views.group(1, 0, "gcd", [("#12", at < right) for at in range(8)]))


def test_text_of_peers_is_never_taken_as_markup(opened: Opened) -> None:
    labels = opened(Live, views.odd()["long names"]).findChildren(QLabel)
    assert any("<b>bold</b>" in label.text().replace("\u200b", "") for label in labels)
    for label in labels:
        assert label.textFormat() == Qt.TextFormat.PlainText or not label.text()
    assert not any("\u202e" in label.text() or "\x1b" in label.text() for label in labels)


def test_five_thousand_peers_are_searched_and_sorted(opened: Opened) -> None:
    view = views.together(5000)
    page = opened(SwarmPage, view)
    rows = page._table.rows
    assert rows.rowCount() == 5000 and view.swarm is not None
    wanted = view.swarm.peers[4321].name
    page._find.setText(wanted)
    assert wanted in [peer.name for peer in rows.shown] and rows.rowCount() < 5
    page._find.clear()
    rows.sort(0, Qt.SortOrder.AscendingOrder)
    assert rows.shown[0].name == min(peer.name for peer in view.swarm.peers)


def test_a_wrong_invite_is_refused_until_it_is_mended(
    qtbot: QtBot, opened: Opened, asked: list[object]
) -> None:
    page = opened(SwarmPage, views.learning())
    address = next(one for one in page.findChildren(QLineEdit) if one.isVisible())
    address.setText("http://nowhere")
    qtbot.keyClick(address, Qt.Key.Key_Return)
    assert asked == [] and "web page" in texts(page)
    address.setText("ws://192.168.1.7:8777")
    assert "web page" not in texts(page), "what was wrong may be right now"
    qtbot.keyClick(address, Qt.Key.Key_Return)
    assert asked == [("join", "ws://192.168.1.7:8777")]


CLASS = "shoal://join/ws/192.168.1.7:8777?room=class"


@pytest.mark.parametrize("written", [CLASS, f" {str(parse(CLASS).words()).title()}"], ids=["link", "words"])
@pytest.mark.parametrize("welcome", [False, True], ids=["swarm page", "welcome"])
def test_nobody_joins_a_class_before_they_have_read_what_it_means(
    welcome: bool,
    written: str,
    qtbot: QtBot,
    light: Theme,
    actions: Actions,
    opened: Opened,
    asked: list[object],
) -> None:
    if welcome:
        page: Any = CompanyStep(light, actions, lambda _: None, lambda: None)
        qtbot.addWidget(page)
        page.show()
        page.findChildren(Option)[-1].radio.click()
    else:
        page = opened(SwarmPage, views.learning())
    address = next(one for one in page.findChildren(QLineEdit) if one.isVisible())
    address.setText(CLASS.replace(".7:", ".8:"))
    qtbot.keyClick(address, Qt.Key.Key_Return)
    assert asked == [] and "Its teacher sees" in texts(page)
    address.setText(written)
    assert "Its teacher sees" not in texts(page)
    qtbot.keyClick(address, Qt.Key.Key_Return)
    assert asked == [] and "Its teacher sees" in texts(page), "another class is another question"
    qtbot.keyClick(address, Qt.Key.Key_Return)
    assert asked == [("join", CLASS)]


def test_history_is_searched_and_exported(opened: Opened) -> None:
    page = opened(HistoryPage, views.learning())
    rows = list(csv.DictReader(io.StringIO(page.exported())))
    assert len(rows) == 160 and (rows[0]["round"], rows[0]["run"]) == ("160", "1")
    assert abs(datetime.fromisoformat(rows[0]["at"]).timestamp() - views.NOW) < 10
    page._which.choose("events")
    page._choose("events")
    page._find.setText("memory ran")
    (event,) = csv.DictReader(io.StringIO(page.exported()))
    assert event["kind"] == "trainer_restarted" and "memory ran" in event["sentence"]
    page.show_view(View())
    assert page.exported() == "at,round,kind,sentence\n"


def test_history_names_what_a_lesson_taught_and_from_whom(opened: Opened) -> None:
    fields = {"seconds": 9.0, "informative_own": 0, "train_solved": 0.0, "lesson": 12}
    taught = {1: (("gcd",), ("calm-otter-1",)), 2: (("gcd", "lcm", "dice"), ("calm-otter-1", "b", "c", "d"))}
    rounds = [
        Round(round=at, lesson_families=families, lesson_from=names, **fields)  # type: ignore[arg-type]
        for at, (families, names) in taught.items()
    ]
    rows = opened(HistoryPage, View(rounds=tuple(rounds)))._table.rows
    assert [rows.data(rows.index(at, 2)) for at in range(rows.rowCount())] == [
        "Greatest common divisor, Least common multiple and 1 more: lesson from calm-otter-1 and 3 more",
        "Greatest common divisor: lesson from calm-otter-1",
    ]


def test_a_list_that_cannot_be_written_says_so(
    opened: Opened, qtbot: QtBot, light: Theme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, curve = opened(HistoryPage, views.learning()), Curve(light)
    qtbot.addWidget(curve)
    curve.show_view(views.learning())
    for name, said in (("no/such/folder.csv", "can't be written"), ("rounds.csv", "Saved as")):
        chosen = str(tmp_path / name)
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, chosen=chosen: (chosen, ""))
        curve._save_csv()
        page._save()
        assert said in texts(page) and name in texts(page) and said in curve._saved.text()
    assert len((tmp_path / "rounds.csv").read_text().splitlines()) == 161


def test_a_row_of_the_history_opens_what_is_behind_it(
    qtbot: QtBot, opened: Opened, asked: list[object]
) -> None:
    page = opened(HistoryPage, views.learning())
    table = page._tables["rounds"]
    place = table.visualRect(table.rows.index(3, 1)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert asked == [("round", table.rows.shown[3].round)]
    table.selectRow(5)
    qtbot.keyClick(table, Qt.Key.Key_Return)
    assert asked[-1] == ("round", table.rows.shown[5].round)
    page._which.choose("runs")
    page._choose("runs")
    run = page._tables["runs"].rows.shown[0]
    page._tables["runs"].selectRow(0)
    qtbot.keyClick(page._tables["runs"], Qt.Key.Key_Return)
    assert page._which.value == "rounds" and len(asked) == 2
    assert table.rows.shown[table.currentIndex().row()].run == run.run


def test_the_privacy_page_says_what_leaves_and_stops_it(opened: Opened, asked: list[object]) -> None:
    page = opened(Privacy, views.learning())
    switch = shown(page)["Learn with others"]
    assert "Nothing" in texts(page).splitlines() and not switch.isChecked()
    assert "it opens a port to your network" in texts(page), "before it happens"
    together = views.together()
    assert together.swarm is not None
    long = LoggedMessage(at=views.NOW + 1, outgoing=True, kind="pub", size=9000, text="x" * 9000)
    swarm = changed(together.swarm, messages=(*together.swarm.messages, long))
    page.show_view(changed(together, swarm=swarm))
    assert "1.8 MB" in texts(page) and "shoal.example.org" in texts(page) and switch.isChecked()
    page._feed.rows[0]._open.click()
    assert [one.toPlainText() for one in page.findChildren(QPlainTextEdit)] == ["x" * 9000]
    shown(page)["Received"].click()
    assert "others' puzzles and answers" in texts(page)
    fresh = changed(together.swarm, given_ever=0, messages=(), open_port=8777)
    page.show_view(changed(together, swarm=fresh))
    assert "No puzzle answers yet" in texts(page), "signing in is no answer"
    assert "port 8777 is open to your network" in texts(page)
    switch.click()
    assert asked[-1] == "alone"
    page.show_view(changed(together, state=NodeStatus.PAUSED, ruling=None))
    assert "Nothing right now" in texts(page)
    page.show_view(
        views.learning(solo=False, swarm=views.swarm(0, connected=False, sentence="Next try in 8 s."))
    )
    assert "Nothing right now" in texts(page) and "Next try in 8 s." in texts(page)


def test_pages_are_reached_by_keyboard_alone(qtbot: QtBot, opened: Opened) -> None:
    window = opened(MainWindow)
    with qtbot.waitActive(window, timeout=30_000):
        window.activateWindow()
    for at, page in enumerate(PAGES[:9], start=1):
        qtbot.keyClick(window, getattr(Qt.Key, f"Key_{at}"), Qt.KeyboardModifier.ControlModifier)
        assert window.page == page
    qtbot.keyClick(window, Qt.Key.Key_F1)
    assert window.page == PAGES[-1]
    place = window._sidebar._group.button(0)
    window.go(PAGES[-1])
    place.setFocus()
    qtbot.keyClick(place, Qt.Key.Key_Down)
    assert window.page == "overview", "after the last page comes the first"
    window._pages["overview"].findChild(Segments).setFocus()
    window.go("privacy")
    assert window.focusWidget() is window._pages["privacy"], "Enter presses nothing by itself"
    for shortcut in window.findChildren(QShortcut):
        if shortcut.key() == QKeySequence("Ctrl+,"):
            shortcut.activated.emit()
    assert window.page == "settings"
    window._search()
    assert isinstance(window.focusWidget(), QLineEdit)
    keys = about("/home").text
    assert all(key in keys for key in ("Ctrl+P", "Ctrl+F", "Ctrl+,", "F1"))


def test_tab_reaches_the_chosen_one_of_several_only(qtbot: QtBot) -> None:
    segments = Segments([(1, "One"), (2, "Two"), (3, "Three")], "Which")
    qtbot.addWidget(segments)

    def stops() -> list[str]:
        buttons = segments.findChildren(QPushButton)
        return [one.text() for one in buttons if one.focusPolicy() & Qt.FocusPolicy.TabFocus]

    assert stops() == ["One"]
    segments.choose(3)
    assert stops() == ["Three"]
    segments.findChildren(QPushButton)[1].click()
    assert stops() == ["Two"]


def test_pages_are_made_in_sight_and_let_go_where_they_keep_nothing(qtbot: QtBot, opened: Opened) -> None:
    window = opened(MainWindow, View(state=NodeStatus.STARTING))
    assert set(window._pages) == {"overview"}
    kept = {}
    for page in ("live", "settings", "help", "overview"):
        window.go(page)
        kept[page] = window._pages[page]
    assert set(window._pages) == {"overview", "live"}
    qtbot.waitUntil(lambda: window._stack.count() == 2)
    window.go("settings")
    assert window._pages["settings"] is not kept["settings"]
    window.go("live")
    assert window._pages["live"] is kept["live"], "the place in the list is still there"


def test_no_piece_ever_flashes_up_as_a_window_of_its_own(qtbot: QtBot, light: Theme, actions: Actions) -> None:
    """A widget that is shown before it has a parent does, and takes the keyboard from the real window."""

    class Watch(QObject):
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
                shown.append(type(watched).__name__)
            return False

    shown: list[str] = []
    watch = Watch()
    application = QApplication.instance()
    assert application is not None
    application.installEventFilter(watch)
    window = MainWindow(light, actions)
    qtbot.addWidget(window)
    window.show()
    for view in (views.odd()["new"], views.odd()["together"]):
        for page in PAGES:
            window.show_view(view)
            window.go(page)
    application.removeEventFilter(watch)
    assert shown == ["MainWindow"]


def test_a_skill_leads_to_its_answers(window: MainWindow, qtbot: QtBot) -> None:
    window.show_view(views.odd()["full"])
    window.go("skills")
    page = window._pages["skills"]
    assert isinstance(page, Skills)
    page.ask = replace(page.ask, show_family=lambda name: window.open_page("live").show_family(name))
    page._show_groups()
    title = FAMILIES["gcd"].title
    tile = next(one for one in page.findChildren(Tile) if one.accessibleName().startswith(title))
    qtbot.keyClick(tile, Qt.Key.Key_Return)
    live = window._pages["live"]
    assert window.page == "live" and isinstance(live, Live)
    assert live._family.currentData() == "gcd"
    live.show_family("")


def test_skills_stand_by_kind_and_can_be_searched(opened: Opened) -> None:
    page = opened(Skills, with_families(["gcd", "maze"]))
    assert titles_on(page) == {FAMILIES["gcd"].title, "Mazes"}
    assert not page._search.isVisible()
    names = ["gcd", "maze", "lcm", "mini_sudoku", "spell_backward", "letter_counting", "n_queens", "dice", "bf"]
    page.show_view(with_families(names))
    assert titles_on(page) == {FAMILIES[name].title for name in names}
    kinds = [kind for kind, group in page._groups.items() if group.isVisible()]
    assert kinds == [kind for kind in FamilyKind if kind in {FAMILIES[name].kind for name in names}]
    for sought, found in (("grid", {"Small sudokus", "Queens"}), (" MAZ ", {"Mazes"}), ("xyz", set())):
        page._search.setText(sought)
        assert titles_on(page) == found
        assert page._nothing.isVisible() == (not found)


def test_a_tile_says_what_guessing_solves(opened: Opened) -> None:
    page = opened(Skills, with_families(["lcm", "chain_sum"]))
    said = {tile.accessibleName().split(",")[0]: tile._guessed for tile in page.findChildren(Tile)}
    assert said["Least common multiple"].text() == "Always guessing the product solves 23 of 100 at most."
    assert said["Least common multiple"].isVisible() and not said[FAMILIES["chain_sum"].title].isVisible()
    page.resize(800, 500)
    page.grab()  # lays it out
    heights = [(tile.height(), tile.minimumSizeHint().height()) for tile in page.findChildren(Tile)]
    assert all(height >= least for height, least in heights), heights


def with_families(names: list[str]) -> View:
    families = (FAMILIES[name] for name in names)
    made = (FamilyView(name=one.name, title=one.title, level=0, levels=3, kind=one.kind) for one in families)
    return changed(views.learning(), families=tuple(made))


def titles_on(page: Skills) -> set[str]:
    return {tile.accessibleName().split(",")[0] for tile in page.findChildren(Tile) if tile.isVisible()}
