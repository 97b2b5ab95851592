"""The page Try it: a conversation with the model before training, the trained one, or both side by side; and
puzzles with a verdict, for the models or the person."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QTimer

from app.chat import messages
from app.chat.messages import MAX_TEXT, PuzzleDrawn, Reply, Sort, expand_sides
from app.chat.puzzles import ANSWERED_IN_ROWS
from app.common.text import safe_text
from app.models.catalogue import title
from app.ui.chat.control import AWAY_S, ChatControl, ChatStage
from app.ui.chat.question import QuestionCard
from app.ui.frame.frame import Actions, Page
from app.ui.language.texts import counted, span, tr, translated
from app.ui.theme import Theme
from app.ui.view.view import View
from app.ui.widgets.exchange import Exchange
from app.ui.widgets.pieces import Empty, Label, button, column

SHOWN_MS = 300
KEPT = 30
"""Maximum questions kept on the page."""
_SECOND_MS = 500


class TryIt(Page):
    def __init__(self, theme: Theme, actions: Actions, chatting: ChatControl | None = None) -> None:
        super().__init__(theme, actions, tr("Try it"))
        self._home = ""
        self._chatting = chatting or ChatControl(actions.choices)
        self._chatting.changed.connect(self._show_stage)
        self._chatting.replied.connect(self._heard)
        self._chatting.broke.connect(self._broke)
        self._drawing = 0
        self._waiting: dict[int, Exchange] = {}
        self._giving: dict[int, Exchange] = {}
        self._who = Label("", "faint")
        forgets = tr("Forgets every question and answer on this page")
        self._anew = button(tr("New conversation"), self._forget, hint=forgets)
        for part in (self._who, self._anew):
            self.header.addWidget(part)
        self._card = QuestionCard(theme, self._chatting.stop)
        self._card.asked.connect(self._ask)
        self._card.drawn.connect(self._draw)
        self._card.judged.connect(self._judge)
        self._card.changed.connect(self._show_stage)
        self.add(self._card)
        self._exchanges: list[Exchange] = []
        self._list = column(gap=14)
        self.add(self._list)
        twice = tr("It answers twice: as it came, and as it is now.")
        self._empty = Empty(theme, "tryit", tr("Nothing asked yet"), twice)
        self.add(self._empty, 1)
        self.body.addStretch(1)
        self._second = QTimer(self, interval=_SECOND_MS)
        self._second.timeout.connect(self._say_state)
        self._card.complain("")
        self._show_stage()
        self._show_list()

    @property
    def pid(self) -> int:
        """Process id of the chat process once it has loaded the model, else 0."""
        return self._chatting.pid

    def show_view(self, view: View) -> None:
        self._home = view.home

    def _give(self, exchange: Exchange, teach: bool, share: bool) -> None:
        """Teaches or shares the example that is shown, after the user has confirmed it."""
        puzzle = exchange.puzzle
        assert puzzle is not None
        given = partial(messages.Give, puzzle=puzzle.puzzle, teach=teach, share=share)
        self._giving[self._send(given)] = exchange

    @property
    def _busy(self) -> bool:
        return bool(self._waiting) or bool(self._drawing)

    def enter(self) -> None:
        self._chatting.keep_loaded()
        self._show_stage()

    def leave(self) -> None:
        self._chatting.unload_later()

    def close_down(self) -> None:
        self._second.stop()
        self._chatting.close()

    def _draw(self, sort: Sort = "test") -> None:
        self._card.complain("")
        family, level = self._card.wanted()
        self._drawing = self._send(partial(messages.Draw, sort=sort, family=family, level=level))
        self._show_stage()

    def _ask(self) -> None:
        text = self._card.question.toPlainText().strip()
        if not text or self._busy:
            return
        if len(text) > MAX_TEXT:
            self._card.complain(tr("That's too long: {n} characters at most.", n=MAX_TEXT))
            return
        self._card.complain("")
        puzzle, sides = self._card.puzzle, self._card.answering
        if puzzle is not None:
            number = self._send(partial(messages.Solve, puzzle=puzzle.puzzle, sides=sides))
        else:
            number = self._send(partial(messages.Ask, text=text, sides=sides))
            self._card.question.clear()
        self._waiting[number] = self._exchange(safe_text(text), puzzle)
        self._waiting[number].show_waiting(expand_sides(sides))
        self._card.question.setFocus()
        self._show_stage()

    def _judge(self) -> None:
        puzzle, answer = self._card.puzzle, self._card.own.text().strip()
        if puzzle is None or not answer or self._busy:
            return
        self._card.complain("")
        if puzzle.family in ANSWERED_IN_ROWS:  # the field has one line
            answer = "\n".join(row.strip() for row in answer.split("/"))
        work = self._card.work.text().strip()
        number = self._send(partial(messages.SubmitAnswer, puzzle=puzzle.puzzle, answer=answer, work=work))
        exchange = self._exchange(safe_text(puzzle.text), puzzle)
        exchange.show_own_answer(safe_text(answer), None)
        self._waiting[number] = exchange
        self._card.question.setFocus()  # else a key that is still held would press Stop, which comes next
        self._show_stage()

    def _send(self, make: Callable[..., messages.Request]) -> int:
        """Sends a request that `make` creates from its number; returns the number."""
        return self._chatting.ask(self._home, lambda number: make(number=number))

    def _exchange(self, text: str, puzzle: PuzzleDrawn | None) -> Exchange:
        """Returns the card of this question: a puzzle's existing one, else a new one, at the top."""
        if puzzle is not None and self._exchanges and self._exchanges[0].puzzle == puzzle:
            return self._exchanges[0]
        made = Exchange(text, puzzle)
        self._exchanges.insert(0, made)
        self._list.insertWidget(0, made)
        while len(self._exchanges) > KEPT:
            self._exchanges.pop().deleteLater()
        self._show_list()
        return made

    def _forget(self) -> None:
        for exchange in self._exchanges:
            exchange.deleteLater()
        self._exchanges.clear()
        self._waiting.clear()
        self._card.puzzle = None
        self._card.question.clear()
        self._card.complain("")
        if self._chatting.stage in (ChatStage.READY, ChatStage.BUSY):
            self._send(messages.Forget)
        self._show_list()
        self._show_stage()

    def _heard(self, reply: Reply) -> None:
        exchange = self._waiting.get(reply.number)
        match reply:
            case PuzzleDrawn() if reply.number == self._drawing:
                self._card.take(reply)
            case messages.Growing() if exchange is not None:
                exchange.grow(reply.side, reply.text)
                return
            case messages.Said() if exchange is not None:
                exchange.say(reply)
            case messages.OnlyPuzzles() if exchange is not None:
                only = tr("This model only solves puzzles: draw one, or pick a model that talks.")
                exchange.refuse(only, tr("See the models"), lambda: self.ask.go("models"))
            case messages.AnswerJudged() if exchange is not None:
                exchange.show_own_answer(None, reply.solved)
                if reply.offer:
                    together = self.ask.choices["company"] == "others"
                    exchange.offer(reply.offer, together, partial(self._give, exchange))
            case messages.ExampleGiven() if reply.number in self._giving:
                self._giving.pop(reply.number).given()
            case messages.Solution() if exchange is not None:
                exchange.solution(safe_text(reply.text))
                self._card.told = True
            case messages.ChatNote():
                self._card.complain(translated(safe_text(reply.sentence)))
            case messages.ChatFailed():
                self._end(reply.number, translated(safe_text(reply.sentence)))
            case messages.ChatDone():
                self._end(reply.number, "")
        self._show_stage()

    def _end(self, number: int, sentence: str) -> None:
        exchange = self._waiting.pop(number, None)
        if exchange is not None:
            exchange.done(sentence)
            if (may := exchange.may) is not None:  # once everything has its place
                QTimer.singleShot(SHOWN_MS, may, lambda: self.ensureWidgetVisible(may, 0, 40))
        elif number in self._giving:
            self._giving.pop(number).given(sentence)
        elif sentence:
            self._card.complain(sentence)
        if number == self._drawing:
            self._drawing = 0

    def _broke(self, sentence: str) -> None:
        waiting, self._waiting = list(self._waiting.values()), {}
        for exchange in self._giving.values():
            exchange.given(sentence)
        self._giving.clear()
        for exchange in waiting:
            exchange.done(sentence)
        if not waiting:
            self._card.complain(sentence)
        self._card.puzzle, self._drawing = None, 0
        self._show_stage()

    def _show_list(self) -> None:
        self._empty.setVisible(not self._exchanges)
        self._anew.setVisible(bool(self._exchanges))

    def _show_stage(self) -> None:
        stage, busy, opened = self._chatting.stage, self._busy, self._chatting.opened
        self._card.show_stage(opened, busy)
        self._who.setVisible(opened is not None)
        if opened is not None:
            self._who.say(tr(title(safe_text(opened.model))))
            self._who.setToolTip(f"{safe_text(opened.model)}, {opened.engine.name}")
        timed = busy or stage in (ChatStage.LOADING, ChatStage.BUSY)
        if timed != self._second.isActive():
            self._second.start() if timed else self._second.stop()
        self._say_state()

    def _say_state(self) -> None:
        stage, waited = self._chatting.stage, span(self._chatting.waited_s)
        if stage is ChatStage.LOADING:
            said = tr("Loading the model, {span}", span=waited)
        elif stage is ChatStage.BUSY and self._busy:
            answers = tr("Answering, {span}", span=waited)
            said = answers if self._waiting else tr("Drawing a puzzle")
        elif stage is ChatStage.AWAY:
            said = tr("The first question loads the model.")
        else:
            minutes = round(AWAY_S / 60)
            said = counted(
                "In memory until a minute after you leave this page.",
                "In memory until {n} minutes after you leave this page.",
                minutes,
            )
        self._card.state.say(said)
