"""The card at the top of Try it: draws a puzzle or accepts a typed question, and checks the person's own
answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy, QWidget

from app.chat.messages import ModelOpened, PuzzleDrawn, Sides
from app.chat.puzzles import ANSWERED_IN_ROWS
from app.common.text import safe_text
from app.sapo.asking import MAX_ANSWER
from app.sapo.families import FAMILIES
from app.sapo.families.family import FamilyKind
from app.ui.language.texts import tr
from app.ui.theme import Theme
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import Card, Label, boxed, button, column, field, row
from app.ui.widgets.selecting import Picker, Segments

MAX_WORK = 1000
"""Maximum characters of a person's working."""
_HIGH = 88
"""Height in pixels of the question's text box."""


class QuestionCard(Card):
    """The card with the question and the puzzle it came from; the page decides what happens with it."""

    asked = Signal()
    drawn = Signal(str)
    """Requests a puzzle for this purpose: "test" or "practice"."""
    judged = Signal()
    """Requests a check of the person's own answer."""
    changed = Signal()
    """Emitted when the text in the box, or the choice of who answers, has changed."""

    def __init__(self, theme: Theme, stop: Callable[[], object]) -> None:
        super().__init__()
        self.puzzle: PuzzleDrawn | None = None
        self.told = False
        """Its right answer is on the page, so no one can solve it any more."""
        self._stop = button(tr("Stop"), stop)
        self.send = button(tr("Ask both"), self.asked.emit, "primary", tr("Enter"))
        self.send.setMinimumWidth(self.send.sizeHint().width())
        self.question = QuestionField(self.asked.emit)
        self.question.textChanged.connect(self._edited)
        self._chip, self._sort = Label("", "chip"), Label("", "faint")
        self._about = boxed(row(self._chip, self._sort, 1, gap=8))
        self.state, self._complaint = Label("", "soft", wrap=True), Label("", "bad", wrap=True)
        self.state.setMinimumWidth(150)
        sides = [("both", tr("Both")), ("before", tr("Before")), ("after", tr("After"))]
        self.sides = Segments(sides, tr("Who answers"))
        self.sides.chosen.connect(lambda _: self.changed.emit())
        asks = row(1, self._stop, self.sides, self.send, gap=8)
        said = Bend(self.state, asks, gap=8, least=460)
        said.setStretch(0, 1)
        # Below the buttons what comes and goes moves none of them.
        parts = (self._drawing(theme), self.question, said, self._about, self._own(), self._complaint)
        self.setLayout(column(*parts, gap=11, margins=(18, 16, 18, 14)))
        self._show_levels()

    @property
    def answering(self) -> Sides:
        """Which models are to answer."""
        return cast(Sides, self.sides.value)

    def take(self, puzzle: PuzzleDrawn) -> None:
        """Puts a drawn puzzle into the box."""
        self.puzzle = None
        self.question.setPlainText(safe_text(puzzle.text))
        self.puzzle, self.told = puzzle, False
        self.own.clear()
        self.work.clear()
        self.question.setFocus()

    def complain(self, sentence: str) -> None:
        self._complaint.tell(sentence)

    def show_stage(self, opened: ModelOpened | None, busy: bool) -> None:
        """Shows the stage of the chat; `opened` is the loaded model, if any."""
        self.send.setText(tr("Ask both") if self.sides.value == "both" else tr("Ask"))
        self.send.setEnabled(not busy and bool(self.question.toPlainText().strip()))
        for one in (self._draw_one, self._teach_one, self._check):
            one.setEnabled(not busy)
        if not busy and self._stop.hasFocus():
            self.question.setFocus()
        self._stop.setVisible(busy)
        hint = tr("Draw a puzzle, or ask something of your own")
        if opened is not None:
            hint = tr("Say something, or draw a puzzle") if opened.engine.talks else tr("Draw a puzzle")
        self.question.setPlaceholderText(hint)
        self._show_puzzle(busy)

    def wanted(self) -> tuple[str | None, int | None]:
        """Returns family and level of the next puzzle; None lets the model decide."""
        return self.family.currentData(), self.level.currentData()

    def _drawing(self, theme: Theme) -> Bend:
        self.family, self.level = Picker(theme, tr("Kind of puzzle")), Picker(theme, tr("Level"))
        self.family.addItem(tr("Any it practises"), None)
        for kind in (one for one in FamilyKind if one is not FamilyKind.YOURS):
            self.family.insertSeparator(self.family.count())
            of_kind = (family for family in FAMILIES.values() if family.kind == kind)
            for family in sorted(of_kind, key=lambda one: tr(one.title)):
                title = tr("{kind}: {family}", kind=tr(kind), family=tr(family.title))
                self.family.addItem(title, family.name)
        self.family.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self.family.currentIndexChanged.connect(lambda _: self._show_levels())
        self.level.setMinimumWidth(120)
        self._draw_one = button(tr("Draw a puzzle"), lambda: self.drawn.emit("test"))
        may = tr("A puzzle of practice: your right answer with working may teach your model")
        self._teach_one = button(tr("Teach it one"), lambda: self.drawn.emit("practice"), hint=may)
        drawing = row(self._draw_one, self._teach_one, gap=8)
        return Bend(drawing, row(self.family, self.level, gap=8), 1, gap=8)

    def _own(self) -> QWidget:
        """Builds the fields for the person's own answer and working."""
        self.own = field(tr("Or solve it yourself"), tr("Your own answer"), 190)
        self.own.setMaxLength(MAX_ANSWER)
        self.work = field(tr("Your working, such as 4-1=3"), tr("Your working"))
        self.work.setMaxLength(MAX_WORK)
        self.work.setMinimumWidth(320)
        for one in (self.own, self.work):
            one.returnPressed.connect(self.judged)
        self._check = button(tr("Check mine"), self.judged.emit)
        self._mine = boxed(Bend(self.work, row(self.own, self._check, gap=8), 1, gap=8))
        return self._mine

    def _show_levels(self) -> None:
        family = FAMILIES.get(self.family.currentData() or "")
        self.level.clear()
        self.level.addItem(tr("Its own level"), None)
        for level in range(len(family.levels) if family else 0):
            self.level.addItem(tr("Level {n}", n=level + 1), level)
        self.level.setVisible(family is not None)

    def _show_puzzle(self, busy: bool) -> None:
        puzzle = self.puzzle
        rows = puzzle is not None and puzzle.family in ANSWERED_IN_ROWS
        self.own.setPlaceholderText(tr("Your rows, with / between") if rows else tr("Or solve it yourself"))
        self._mine.setVisible(puzzle is not None and not self.told)
        self._mine.setEnabled(not busy)
        self.work.setVisible(puzzle is not None and not puzzle.unseen)
        self._about.setVisible(puzzle is not None)
        if puzzle is not None:
            title, level = tr(puzzle.title), puzzle.level + 1
            self._chip.say(tr("{family}, level {n} of {all}", family=title, n=level, all=puzzle.levels))
            self._sort.say(tr("a puzzle it never trained on") if puzzle.unseen else tr("a puzzle of practice"))

    def _edited(self) -> None:
        """Forgets the puzzle, because its text was edited."""
        if self.puzzle is not None and self.question.toPlainText().strip() != safe_text(self.puzzle.text):
            self.puzzle = None
        self.changed.emit()


class QuestionField(QPlainTextEdit):
    """A text field for a question. Enter sends it, Shift+Enter starts a new line, Tab moves on."""

    def __init__(self, ask: Callable[[], object]) -> None:
        super().__init__()
        self._ask = ask
        self.setTabChangesFocus(True)
        self.setAccessibleName(tr("Question"))
        self.setFixedHeight(_HIGH)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        shift = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not shift:
            self._ask()
            return
        super().keyPressEvent(event)
