"""The card for questions of one's own: a file is shown before anything is kept, and then learned."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from app.node.data import question_sets
from app.node.models.skills import KnownSkill
from app.sapo.sets import tables
from app.sapo.sets.checks import Check, Rule
from app.sapo.sets.question_set import QuestionSet, Row, encode
from app.sapo.sets.templates import EXAMPLES
from app.skills.answering import AskedAnswer
from app.ui.frame.frame import Actions
from app.ui.process.control import Control
from app.ui.shell.window import MainWindow
from app.ui.skills.adding import OwnQuestions
from app.ui.skills.card import SkillCard
from app.ui.skills.panels import AskPanel, ElsewherePanel
from app.ui.theme import Theme
from app.ui.view.settings import Choices
from app.ui.view.view import Holdings, NodeStatus, ServedDoor, View
from app.ui.widgets.selecting import Picker, Switch
from tests.ui.drawing import dropped

TABLE = (
    "question,answer\n"
    + "".join(f"Mail {n}?,{'spam' if n % 4 else 'ham'}\n" for n in range(16))
    + "Mail 1?,ham\n"
)


@pytest.fixture
def card(qtbot: QtBot, light: Theme, actions: Actions, asked: list[object], tmp_path: Path) -> OwnQuestions:
    def learn(marks: tuple[str, ...]) -> None:
        asked.append(marks)
        actions.choices.remember_window(questions=marks)

    actions.choices.put("model", "smollm2-135m")
    made = OwnQuestions(light, replace(actions, learn_questions=learn))
    qtbot.addWidget(made)
    made.show_view(View(home=str(tmp_path)))
    made.show()
    return made


def buttons(card: OwnQuestions) -> list[str]:
    QApplication.processEvents()
    return [one.text() for one in card.findChildren(QPushButton) if one.isVisibleTo(card)]


def read_set(example: str) -> QuestionSet:
    return tables.read(EXAMPLES[example].encode(), example).made


def pressed(card: OwnQuestions, text: str) -> None:
    QApplication.processEvents()  # what was added last is shown by an event
    next(one for one in card.findChildren(QPushButton) if one.text() == text and one.isVisibleTo(card)).click()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def said(card: OwnQuestions) -> str:
    return "\n".join(label.text() for label in card.findChildren(QLabel) if label.isVisibleTo(card))


def test_a_table_is_shown_then_kept_and_learned(
    card: OwnQuestions, qtbot: QtBot, asked: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mails.csv"
    file.write_text(TABLE)
    card.offer(str(file))
    qtbot.waitUntil(lambda: card.preview.isVisible())
    shown = said(card)
    assert "16 different rows" in shown and "question: text\nanswer: answer\nMail 0?\nham" in shown
    assert "75 of 100" in shown and "Row 18" in shown, "what a constant answer earns, and what is left out"
    assert question_sets.stored_sets(tmp_path) == [] and asked == []
    card.preview._check.setCurrentIndex(list(Check).index(Check.TEXT))
    card.preview._check_otherwise()
    qtbot.waitUntil(
        lambda: card.preview._found is not None and card.preview._found.made.rule.check is Check.TEXT
    )
    card.preview._name.setText("Post")
    card.preview._take()
    [one] = question_sets.stored_sets(tmp_path)
    assert one.made.name == "Post" and one.made.rule.check is Check.TEXT and asked == [(one.made.mark,)]
    focus = card.focusWidget()
    assert "Added." in said(card) and isinstance(focus, Switch), "the focus fell on the next card's button"
    monkeypatch.setattr(QMessageBox, "exec", lambda box: box.defaultButton().click())
    card._remove(one)
    assert question_sets.stored_sets(tmp_path) == [one], "Enter deletes nothing"
    monkeypatch.setattr(QMessageBox, "exec", lambda box: _deed(box).click())
    card._remove(one)
    assert asked[-1] == () and question_sets.stored_sets(tmp_path) == []
    card._type()
    qtbot.keyClick(card._text, Qt.Key.Key_Escape)
    assert card._typing.isHidden()


def _deed(box: QMessageBox) -> QAbstractButton:
    role = QMessageBox.ButtonRole.DestructiveRole
    return next(one for one in box.buttons() if box.buttonRole(one) is role)


def test_what_a_class_offers_is_looked_at_before_it_is_kept(
    card: OwnQuestions, qtbot: QtBot, tmp_path: Path
) -> None:
    rows = tuple(Row(question=f"Capital {n}?", answer=f"City {n}") for n in range(9))
    for name in ("Capitals", "Cities"):
        made = QuestionSet(name=name, rule=Rule(articles=name == "Cities"), rows=rows)
        assert question_sets.store_offered_set(tmp_path, encode(made).decode())
    assert (
        not question_sets.store_offered_set(tmp_path, "<script>") and question_sets.stored_sets(tmp_path) == []
    )
    card.show_view(View(home=str(tmp_path)))
    assert "Your class offers Capitals, 9 questions." in said(card)
    pressed(card, "No, thanks")  # the first of them
    assert "Capitals" not in said(card)
    card._target = question_sets.KeptSet(file=tmp_path / "x", made=read_set("Times tables"))
    pressed(card, "Look at it")
    assert card._target is None, "what a class offers is added to no other set"
    qtbot.waitUntil(lambda: card.preview.isVisible())
    assert "Capital 0? → City 0" in said(card).replace("  ", " ")
    card.preview._take()
    assert [one.made.name for one in question_sets.stored_sets(tmp_path)] == ["Cities"]
    assert "Your class" not in said(card)
    share = next(iter(card._cards.values()))._share
    assert not share.isVisible()
    card.show_view(View(home=str(tmp_path), words="six of them"))
    assert share.isVisible() and share.text() == "Share with members"
    share.trigger()
    assert question_sets.stored_sets(tmp_path)[0].shares_answers and share.text() == "Stop sharing"


def test_what_cannot_be_read_is_told_and_keeps_nothing(
    card: OwnQuestions, qtbot: QtBot, tmp_path: Path
) -> None:
    card.preview.look(b"PK\x03\x04 no workbook", "x")
    qtbot.waitUntil(lambda: card._problem.isVisible())
    assert card._problem.text() and not card.preview.isVisible()
    card.preview.look(b"text,label\n" + b"Hello,\n" * 9, "x")
    qtbot.waitUntil(lambda: card.preview.isVisible())
    assert "no answer (9)" in card._problem.text() and not card.preview._add.isEnabled(), (
        "the columns can be changed"
    )
    card.offer(str(tmp_path / "missing.csv"))
    assert card._problem.isVisible() and question_sets.stored_sets(tmp_path) == []


def test_how_a_table_is_read_can_be_changed(card: OwnQuestions, qtbot: QtBot) -> None:
    rows = "".join(f"{n};Betreff {n};Text {n} dazu;{'AB'[n % 2]}\n" for n in range(10))
    card.preview.look(f"Nr;Betreff;Inhalt;Ordner\n{rows}".encode("cp1252"), "Mails")
    qtbot.waitUntil(lambda: card.preview.isVisible())
    assert "Inhalt: text" in said(card) and "Ordner: answer" in said(card)
    card.preview._texts.actions()[1].trigger()
    qtbot.waitUntil(lambda: card.preview._found is not None and card.preview._found.reading.text == (1, 2))
    assert card.preview._found.made.rows[0].question == "Betreff 0\nText 0 dazu"
    card.preview._heading.setCurrentIndex(1)
    card.preview._heading.activated.emit(1)
    qtbot.waitUntil(lambda: not card.preview._found.reading.heading)
    assert len(card.preview._found.made.rows) == 11


def test_a_dropped_table_opens_skills(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    file = tmp_path / "tables.txt"
    file.write_text(EXAMPLES["Times tables"])
    window.show_view(View(home=str(tmp_path)))
    assert dropped(window, [file])
    assert window.page == "skills"
    card = window._pages["skills"].own  # type: ignore[attr-defined]
    qtbot.waitUntil(lambda: card.preview.isVisible())
    assert "66" in card.preview._facts.text()
    question, answer = card.preview._rows[0].text().split(" → ")
    a, b = re.findall("[0-9]+", question)
    assert int(a) * int(b) == int(answer), "what its templates make is shown"


def test_the_starter_does_not_learn_a_table_and_a_model_that_reads_is_offered(
    card: OwnQuestions, qtbot: QtBot, asked: list[object]
) -> None:
    card._ask.choices.put("model", "starter")
    card.preview.look(TABLE.encode(), "Mails")
    qtbot.waitUntil(lambda: card.preview.isVisible())
    card.preview._take()
    (mark,) = card.kept
    assert asked == [] and "Pick a model" in said(card) and card._ask.choices.memory.waits == (mark,)
    pressed(card, "See the models")
    assert asked == ["models"] and card._cards[mark].switch.isChecked()
    card._ask.choices.remember_window(waits=())  # as when a model is chosen there
    card.show_view(View(home=str(card._home)))
    assert card._reader.isHidden() and "learns them now" in said(card)


def test_rows_are_added_to_a_set_by_its_own_check(
    card: OwnQuestions, qtbot: QtBot, asked: list[object], tmp_path: Path
) -> None:
    card.preview.look(TABLE.encode(), "Mails")
    qtbot.waitUntil(lambda: card.preview.isVisible())
    card.preview._take()
    [kept] = question_sets.stored_sets(tmp_path)
    more = tmp_path / "more.csv"
    more.write_text("text,label\nMail 0?,spam\nMail 77?,ham\n")  # too few rows for a set of their own
    card.offer(str(more), kept)
    qtbot.waitUntil(lambda: card.preview.isVisible())
    assert card.preview._add.text() == "Add to Mails" and not card.preview._check.isEnabled()
    card.preview._add.click()
    [grown] = question_sets.stored_sets(tmp_path)
    assert {row.question: row.answer for row in grown.made.rows}["Mail 0?"] == "spam"
    assert len(grown.made.rows) == len(kept.made.rows) + 1 and grown.made.mark == kept.made.mark
    assert "New rows: 1. Corrected: 1." in said(card) and asked[-1] == (kept.made.mark,)


def test_a_card_shows_what_can_be_done_and_one_panel_at_a_time(
    card: OwnQuestions, qtbot: QtBot, tmp_path: Path
) -> None:
    card.preview.look(TABLE.encode(), "Mails")
    qtbot.waitUntil(lambda: card.preview.isVisible())
    card.preview._take()
    [kept], [shown] = question_sets.stored_sets(tmp_path), list(card._cards.values())
    assert not shown._doing.isVisibleTo(card), "nothing can be asked before it is learned"
    view = View(home=str(tmp_path), skill=kept.made.family_name, state=NodeStatus.LEARNING, done=3, total=9)
    shown.show_view(view)
    assert "Learning now" in said(card) and shown._bar.value() == 3
    known = KnownSkill(made=kept.made, slug="mails", folder=tmp_path, model=tmp_path, model_name="tiny")
    shown.show_skill(kept, known, on=True, private=False)
    door = ServedDoor(url="http://127.0.0.1:1234/v1", token="sk-shoal-1", model="tiny", chosen="tiny")
    shown.open("elsewhere")
    assert "choose tiny and turn on “Use it in other programs”" in said(card), "the switch is on one page"
    other = msgspec.structs.replace(door, model="starter", chosen="starter")
    shown.show_view(msgspec.structs.replace(view, models=Holdings(chosen="starter", door=other)))
    assert "choose tiny" in said(card), "another model is served"
    shown.show_view(msgspec.structs.replace(view, models=Holdings(chosen="tiny", door=door)))
    elsewhere = shown._panels["elsewhere"]
    assert isinstance(elsewhere, ElsewherePanel) and "mails" in said(card)
    assert elsewhere._command() == (
        'curl http://127.0.0.1:1234/v1/chat/completions -H "Authorization: Bearer sk-shoal-1" '
        "-H Content-Type:application/json "
        '-d "{\\"model\\": \\"mails\\", '
        '\\"messages\\": [{\\"role\\": \\"user\\", \\"content\\": \\"A text\\"}]}"'
    )
    shown.open("teach")
    assert not elsewhere.isVisibleTo(card) and "spam 12 · ham 4" in said(card)
    shown.open("teach")
    assert isinstance(shown, SkillCard) and not shown._opened


def test_a_corrected_answer_is_added_to_the_table_and_learned(
    card: OwnQuestions, qtbot: QtBot, asked: list[object], tmp_path: Path
) -> None:
    card.preview.look(TABLE.encode(), "Mails")
    qtbot.waitUntil(lambda: card.preview.isVisible())
    card.preview._take()
    [kept] = question_sets.stored_sets(tmp_path)
    known = KnownSkill(made=kept.made, slug="mails", folder=tmp_path, model=tmp_path, model_name="tiny")
    [shown] = card._cards.values()
    shown.show_skill(kept, known, on=True, private=False)
    shown.open("ask")
    panel = shown._panels["ask"]
    assert isinstance(panel, AskPanel) and isinstance(panel._right.field, Picker)
    panel._asked = "Free money?"
    panel._hear(AskedAnswer(answer="ham", sure=0.6, labels={"spam": 0.4, "ham": 0.6}))
    assert panel._right.text == "ham"
    panel._right.show_answer("spam")
    pressed(card, "Teach it this")
    [kept] = question_sets.stored_sets(tmp_path)
    taught = Row(question="Free money?", answer="spam", held_out=False, amended=True)
    assert taught in kept.made.rows, "what was corrected by hand is taught, not kept aside"
    assert asked[-1] == (kept.made.mark,) and "New rows: 1." in panel._kept.text()


def test_a_skill_is_asked_in_its_own_words_and_says_how_sure_it_is(
    qtbot: QtBot, light: Theme, actions: Actions, tmp_path: Path
) -> None:
    made = tables.read(TABLE.encode(), "Mails").made
    known = KnownSkill(made=made, slug="mails", folder=tmp_path, model=tmp_path, model_name="tiny")
    told: list[tuple[str, str]] = []
    said = AskedAnswer(answer="ham", sure=0.7512, labels={"spam": 0.2488, "ham": 0.7512}, right=19, of=20)
    replies: list[AskedAnswer | str] = [said, "This text is longer than the model reads at once: shorten it."]

    def ask(skill: str, text: str, hear: Callable[[AskedAnswer | str], None]) -> None:
        told.append((skill, text))
        hear(replies.pop(0))

    panel = AskPanel(light, replace(actions, ask_skill=ask), known, lambda rows: "")
    qtbot.addWidget(panel)
    panel.show()
    panel._text.setText(" Lunch? ")
    panel._go()
    assert told == [(made.mark, "Lunch?")] and panel._answer.text() == "ham"
    assert panel._sure.text() == (
        "75 % sure. Of 20 rows kept aside that were about as sure, 19 were right.\nham 75 % · spam 25 %"
    )
    panel._go()
    assert panel._answer.isHidden() and "shorten it" in panel._sure.text()


def test_sets_that_are_on_and_still_there_go_to_the_node(tmp_path: Path) -> None:
    made = question_sets.add(tmp_path, tables.read(EXAMPLES["Plural forms"].encode(), "Plural").made)
    choices = Choices(tmp_path)
    choices.remember_window(questions=(made.made.mark, "0123456789ab"))
    control = Control.__new__(Control)
    control._choices, control._home = choices, tmp_path
    assert control._questions() == ["--questions", made.made.mark]
    question_sets.remove(tmp_path, made)
    assert control._questions() == []
