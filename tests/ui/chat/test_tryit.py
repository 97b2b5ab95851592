"""The page Try it and the first minute, with small programs in the place of the model's process; and once
with the real one."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QApplication
from pytestqt.qtbot import QtBot

from app.chat import messages
from app.node.data.library import ModelEntry
from app.ui.chat.control import ChatControl, ChatStage
from app.ui.chat.page import TryIt
from app.ui.frame.frame import Actions
from app.ui.overview.page import Overview
from app.ui.process.job import Job
from app.ui.theme import Theme
from app.ui.view import model_words
from app.ui.view.view import NodeStatus, View
from app.ui.widgets.exchange import AnswerCard
from tests.ui import views
from tests.ui.drawing import press, texts

PATIENCE_MS = 240_000
GOOD = """
import json, sys
from pathlib import Path
engine = dict(name="torch", device="CPU", dtype="float32", model="m", parameters=1, trainable=1, threads=1)
engine["memory_budget_mb"] = 1
def say(kind, number, **what):
    print(json.dumps(dict(type=kind, number=number, **what)), flush=True)
say("opened", 0, model="starter", engine=engine, learned=160, levels={"gcd": 1})
for line in sys.stdin:
    asked = json.loads(line)
    number = asked["number"]
    with open(Path(__file__).with_suffix(".heard"), "a") as file:
        file.write(line)
    if asked.get("text") == "die":
        sys.exit(3)
    if asked.get("text") == "refuse":
        say("failed", number, sentence="A prompt of 900 tokens is too long: ask something shorter.")
        continue
    if asked.get("text") in ("wait", "deaf"):
        say("growing", number, side="before", text="once upon\\u202e")
        deaf = asked["text"] == "deaf"
        continue
    if asked["type"] == "stop":
        if not deaf:
            say("said", number, side="before", text="once upon a", finished=False, tokens=3, seconds=0.1,
                stopped=True)
            say("done", number)
        continue
    if asked.get("text") == "chat":
        say("onlypuzzles", number)
        say("done", number)
        continue
    if asked["type"] == "draw":
        say("drawn", number, puzzle=number, family="gcd", title="Greatest common divisor", levels=5,
            level=asked["level"] or 0, text="GCD of 12 and 8?", unseen=True)
    elif asked["type"] == "judge":
        say("judged", number, solved=asked["answer"] == "4")
        say("solution", number, text="4")
    elif asked["type"] in ("ask", "solve"):
        right = (False, True) if asked["type"] == "solve" else (None, None)
        say("said", number, side="before", text="#12\\u202e\\x1b[2J", finished=False, tokens=9, seconds=0.2,
            solved=right[0])
        say("said", number, side="after", text="12=3*4 #4", finished=True, tokens=1, seconds=0.1,
            solved=right[1], learned=160)
        if asked["type"] == "solve":
            say("solution", number, text="4")
    say("done", number)
"""
REFUSES = """
said = '"number":0,"sentence":"The model x is not here: choose another.","final":true'
print('{"type":"failed",' + said + '}', flush=True)
raise SystemExit(1)
"""

Open = Callable[..., TryIt]


@pytest.fixture
def open_page(qtbot: QtBot, light: Theme, actions: Actions, tmp_path: Path) -> Iterator[Open]:
    made: list[TryIt] = []

    def page(program: str = GOOD, away_s: float = 180) -> TryIt:
        file = tmp_path / "chat.py"
        file.write_text(textwrap.dedent(program))
        chatting = ChatControl(actions.choices, Job(messages.MAX_LINE, [str(file)]), away_s)
        one = TryIt(light, actions, chatting)
        made.append(one)
        qtbot.addWidget(one)
        one.resize(968, 780)
        one.show_view(View(home=str(tmp_path), models=views.holdings()))
        one.show()
        return one

    yield page
    for one in made:
        one.close_down()


def heard(folder: Path) -> str:
    return (folder / "chat.heard").read_text()


def ask(qtbot: QtBot, page: TryIt, text: str) -> None:
    page._card.question.setPlainText(text)
    qtbot.keyClick(page._card.question, Qt.Key.Key_Return)


def test_a_question_is_answered_twice(qtbot: QtBot, open_page: Open) -> None:
    page = open_page()
    assert "Nothing asked yet" in texts(page) and "first question loads" in texts(page) and not page.pid
    ask(qtbot, page, "What is 4 + 3?")
    QApplication.processEvents()
    assert page.pid and "thinking" in texts(page) and "Loading the model" in texts(page)
    qtbot.waitUntil(lambda: "12=3*4 #4" in texts(page), timeout=PATIENCE_MS)
    said = texts(page)
    assert "Before" in said and "After 160 rounds" in said and "1 token  ·  0.1 s" in said
    assert "#12··[2J …" in said and "cut off" in said, "nothing in it is obeyed, and its end is told"
    qtbot.waitUntil(lambda: "In memory until 3 minutes" in texts(page), timeout=PATIENCE_MS)
    assert page._who.text() == "Starter" and page._card.question.toPlainText() == ""
    press(qtbot, page, "New conversation")
    qtbot.waitUntil(lambda: "What is 4 + 3?" not in texts(page), timeout=PATIENCE_MS)
    assert "Nothing asked yet" in texts(page)


def test_a_puzzle_is_drawn_answered_and_judged(qtbot: QtBot, open_page: Open, tmp_path: Path) -> None:
    page = open_page()
    page._card.family.setCurrentIndex(page._card.family.findData("gcd"))
    page._card.level.setCurrentIndex(page._card.level.findData(2))
    press(qtbot, page, "Draw a puzzle")
    qtbot.waitUntil(lambda: "GCD of 12 and 8?" in page._card.question.toPlainText(), timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: page._card.send.isEnabled(), timeout=PATIENCE_MS)
    assert '"family":"gcd","level":2' in heard(tmp_path)
    assert "level 3 of 5" in texts(page) and "never trained on" in texts(page)
    page._card.own.setText("4")
    press(qtbot, page, "Check mine")
    qtbot.waitUntil(lambda: "A right answer: 4" in texts(page), timeout=PATIENCE_MS)
    assert "You\n4" in texts(page) and "✓ right" in texts(page).splitlines()
    qtbot.waitUntil(lambda: page._card.send.isEnabled(), timeout=PATIENCE_MS)
    press(qtbot, page, "Ask both")
    qtbot.waitUntil(lambda: "12=3*4 #4" in texts(page), timeout=PATIENCE_MS)
    verdicts = [one._verdict.text() for one in page.findChildren(AnswerCard)]
    assert verdicts == ["✗ wrong", "✓ right"] and '"type":"solve"' in heard(tmp_path)
    assert len(page._exchanges) == 1, "one puzzle, one card"
    qtbot.waitUntil(lambda: page._card.send.isEnabled(), timeout=PATIENCE_MS)
    ask(qtbot, page, "GCD of 12 and 9?")  # its own words: no puzzle, and no verdict
    qtbot.waitUntil(lambda: len(page._exchanges) == 2 and not page._waiting, timeout=PATIENCE_MS)
    assert '"type":"ask"' in heard(tmp_path) and "level 3 of 5" not in texts(page._card)


def test_errors_are_sentences_and_it_goes_on(qtbot: QtBot, open_page: Open) -> None:
    page = open_page()
    ask(qtbot, page, "refuse")
    qtbot.waitUntil(lambda: "900 tokens is too long" in texts(page), timeout=PATIENCE_MS)
    assert page.pid
    ask(qtbot, page, "die")
    qtbot.waitUntil(lambda: "model stopped" in texts(page), timeout=PATIENCE_MS)
    assert not page.pid and "first question loads" in texts(page)
    ask(qtbot, page, "again")
    qtbot.waitUntil(lambda: "12=3*4 #4" in texts(page), timeout=PATIENCE_MS)
    ask(qtbot, page, "x" * 9000)
    assert "8000 characters at most" in texts(page)


def test_words_without_end_make_nothing_wider(qtbot: QtBot, open_page: Open) -> None:
    page = open_page()
    page.resize(760, 520)
    exchange = page._exchange("q" * 3000, None)
    exchange.show_waiting(("before", "after"))
    said = messages.Said(
        number=1, side="after", text="9" * 3000, finished=True, tokens=9, seconds=1.0, learned=1
    )
    exchange.say(said)
    exchange.show_own_answer("7" * 500, False)
    exchange.solution("5" * 500)
    for _ in range(4):
        QApplication.processEvents()
    assert page.widget().width() <= page.viewport().width()


def test_without_a_model_it_says_so(qtbot: QtBot, open_page: Open) -> None:
    page = open_page(REFUSES)
    ask(qtbot, page, "hello")
    qtbot.waitUntil(lambda: "The model x is not here: choose another." in texts(page), timeout=PATIENCE_MS)
    assert not page.pid


def test_an_answer_is_seen_as_it_grows_and_can_be_stopped(qtbot: QtBot, open_page: Open) -> None:
    page = open_page()
    ask(qtbot, page, "wait")
    qtbot.waitUntil(lambda: "once upon· ▌" in texts(page), timeout=PATIENCE_MS)
    assert "Answering" in texts(page) and not page._card.send.isEnabled()
    pid = page.pid
    press(qtbot, page, "Stop")
    qtbot.waitUntil(lambda: "once upon a …" in texts(page), timeout=PATIENCE_MS)
    assert "0.1 s  ·  stopped" in texts(page) and "no answer" in texts(page) and page.pid == pid
    ask(qtbot, page, "hello")
    qtbot.waitUntil(lambda: "12=3*4 #4" in texts(page), timeout=PATIENCE_MS)


def test_what_does_not_stop_is_ended(qtbot: QtBot, open_page: Open) -> None:
    page = open_page()
    page._chatting._deaf.setInterval(50)
    ask(qtbot, page, "deaf")
    qtbot.waitUntil(lambda: "once upon" in texts(page), timeout=PATIENCE_MS)
    pid = page.pid
    press(qtbot, page, "Stop")
    qtbot.waitUntil(lambda: "Stopped." in texts(page), timeout=PATIENCE_MS)
    assert "no answer" in texts(page) and not page.pid
    qtbot.waitUntil(lambda: not psutil.pid_exists(pid), timeout=PATIENCE_MS)


def test_one_of_the_two_can_be_asked_alone(qtbot: QtBot, open_page: Open, tmp_path: Path) -> None:
    page = open_page()
    press(qtbot, page, "After")
    assert page._card.send.text() == "Ask"
    ask(qtbot, page, "hello")
    qtbot.waitUntil(lambda: "12=3*4 #4" in texts(page), timeout=PATIENCE_MS)
    assert '"sides":"after"' in heard(tmp_path)
    (exchange,) = page._exchanges
    assert [one.isVisibleTo(page) for one in exchange._answers.values()] == [False, True]


def test_a_model_that_only_speaks_puzzle_offers_one_that_talks(
    qtbot: QtBot, open_page: Open, asked: list[object]
) -> None:
    page = open_page()
    ask(qtbot, page, "chat")
    qtbot.waitUntil(lambda: "only solves puzzles" in texts(page), timeout=PATIENCE_MS)
    assert "thinking" not in texts(page) and "no answer" not in texts(page)
    press(qtbot, page, "See the models")
    assert asked == ["models"]


def test_memory_is_free_some_time_after_the_page_was_left(qtbot: QtBot, open_page: Open) -> None:
    page = open_page(away_s=0.5)
    page.enter()
    ask(qtbot, page, "hello")
    qtbot.waitUntil(lambda: page._chatting.stage is ChatStage.READY, timeout=PATIENCE_MS)
    pid = page.pid
    qtbot.wait(900)
    assert page.pid == pid, "it stays while somebody looks"
    page.leave()
    page.enter()
    qtbot.wait(900)
    assert page.pid == pid, "and where somebody comes back"
    page.leave()
    qtbot.waitUntil(lambda: not page.pid and not psutil.pid_exists(pid), timeout=PATIENCE_MS)
    assert "first question loads" in texts(page) and "12=3*4 #4" in texts(page), "what was said stays in sight"


def test_another_model_is_opened_anew(
    qtbot: QtBot, open_page: Open, actions: Actions, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page()
    ask(qtbot, page, "hello")
    qtbot.waitUntil(lambda: page._chatting.stage is ChatStage.READY, timeout=PATIENCE_MS)
    pid = page.pid
    actions.choices.put("engine", "torch")
    ask(qtbot, page, "hello")
    qtbot.waitUntil(lambda: page._chatting.stage is ChatStage.READY, timeout=PATIENCE_MS)
    assert page.pid not in (0, pid)


@pytest.mark.long
def test_the_real_process_answers_and_goes_with_the_page(
    qtbot: QtBot, light: Theme, actions: Actions, tmp_path: Path
) -> None:
    page = TryIt(light, actions)
    qtbot.addWidget(page)
    page.show_view(View(home=str(tmp_path)))
    page.show()
    try:
        page._card.family.setCurrentIndex(page._card.family.findData("chain_sum"))
        press(qtbot, page, "Draw a puzzle")
        qtbot.waitUntil(lambda: page._card.puzzle is not None, timeout=2 * PATIENCE_MS)
        qtbot.waitUntil(lambda: page._card.send.isEnabled(), timeout=PATIENCE_MS)
        press(qtbot, page, "Ask both")
        qtbot.waitUntil(lambda: "A right answer:" in texts(page), timeout=2 * PATIENCE_MS)
        assert {one._verdict.text() for one in page.findChildren(AnswerCard)} <= {"✓ right", "✗ wrong"}
        process = psutil.Process(page.pid)
        family = [process, *process.children(recursive=True)]
        assert len(family) >= 2, "with the sandbox that judges"
    finally:
        page.close_down()
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive


@pytest.fixture
def first(opened: Callable[..., Any], tmp_path: Path) -> Overview:
    return opened(Overview, View(home=str(tmp_path), models=views.holdings()))


def test_the_first_minute(qtbot: QtBot, first: Overview, asked: list[object]) -> None:
    page = first
    said = texts(page)
    assert "a single network connection" in said and "Never your files" in said and "No account" in said
    assert "Step 1 of 3" in said
    press(qtbot, page, "Set it up")
    assert "Starter: Fits" in texts(page) and "Step 2 of 3" in texts(page)
    press(qtbot, page, "A bigger model")
    assert "Starter: Fits" not in texts(page), "that is another model's figure"
    press(qtbot, page, "See the models")
    assert asked.pop() == "models", "which are looked at where their size and fit are told"
    press(qtbot, page, "Starter (recommended)")
    press(qtbot, page, "Continue")
    assert "Nothing leaves this computer." in texts(page)
    press(qtbot, page, "Start learning")
    assert asked[-1] == ("learn", "alone"), "alone unless somebody chooses otherwise"


def test_company_is_a_choice(qtbot: QtBot, first: Overview, asked: list[object]) -> None:
    page = first
    press(qtbot, page, "Set it up")
    press(qtbot, page, "Continue")
    press(qtbot, page, "With others on this network")
    press(qtbot, page, "Start learning")
    press(qtbot, page, "With an invite or six words")
    press(qtbot, page, "Start learning")
    assert "There is no address here" in texts(page) and asked[-1] == ("learn", "others")
    page._welcome._company._invite.setText("wss://example.org")
    press(qtbot, page, "Start learning")
    assert asked[-2:] == [("learn", "others"), ("join", "wss://example.org")]


@pytest.mark.parametrize(
    ("round_s", "said"),
    [
        (3.75, "about 960 rounds an hour"),
        (3.0, "about 1 200 rounds an hour"),
        (3000.0, "about 1 round an hour"),
        (14_400.0, "about 4 h a round"),
        (None, ""),
    ],
)
def test_a_pace_promises_no_more_than_it_knows(round_s: float | None, said: str) -> None:
    model = ModelEntry(name="x", title="X", round_s=round_s)
    assert model_words.pace(model).replace("\u2009", " ") == said


def test_the_keyboard_alone_gets_through(qtbot: QtBot, first: Overview, asked: list[object]) -> None:
    page = first
    page.activateWindow()
    page._welcome._what._on.setFocus()
    for expected in ("Continue", "Start learning"):
        qtbot.keyClick(page.window().focusWidget(), Qt.Key.Key_Space)
        focused = page.window().focusWidget()
        assert isinstance(focused, QAbstractButton) and focused.text() == expected
    options = page._welcome._company._options
    QApplication.processEvents()  # neighbours are found by where they are
    options._group.checkedButton().setFocus()
    qtbot.keyClick(page.window().focusWidget(), Qt.Key.Key_Down)
    assert options.value == "find"
    qtbot.keyClick(page._welcome._company._start, Qt.Key.Key_Space)
    assert asked[-1] == ("learn", "others")
    assert NodeStatus.NEW is View().state
