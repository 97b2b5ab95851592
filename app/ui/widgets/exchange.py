"""A card with one question and its answers side by side, their verdicts if it is a puzzle, and a person's own
answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSizePolicy

from app.chat.messages import SIDES, PuzzleDrawn, Said, Side
from app.common.text import safe_text
from app.ui.language.texts import counted, number, tr
from app.ui.theme.theme import BODY, mono
from app.ui.widgets.pieces import Card, Label, boxed, button, column, row

_LONGEST_WORD = 36
Give = Callable[[bool, bool], None]
"""Called with (teach the model here, share with the swarm)."""


class Exchange(Card):
    def __init__(self, text: str, puzzle: PuzzleDrawn | None) -> None:
        super().__init__()
        self.puzzle = puzzle
        self.may: ExampleOffer | None = None
        question = Label(breakable(text), wrap=True)
        question.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        names: dict[Side, str] = {"before": tr("Before"), "after": tr("After")}
        self._answers = {side: AnswerCard(names[side], puzzle is not None) for side in SIDES}
        self._sides = boxed(row(*self._answers.values(), gap=12, fill=(0, 1)))
        self._sides.hide()
        self._mine, self._judged = Label("", wrap=True), Label("", "good")
        mine = row(Label(tr("You"), "strong"), self._mine, self._judged, gap=8, margins=(14, 0, 14, 0), fill=1)
        self._own = boxed(mine)
        self._own.hide()
        self._right, self._complaint = Label("", "soft", wrap=True), Label("", "bad", wrap=True)
        self._right.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        for part in (self._right, self._complaint):
            part.setContentsMargins(14, 0, 14, 0)
            part.hide()
        self._offer = button("", lambda: None)
        self._offer.hide()
        top = row(question, gap=12, fill=0)
        if puzzle is not None:
            name = tr(
                "{family}, level {n} of {all}", family=tr(puzzle.title), n=puzzle.level + 1, all=puzzle.levels
            )
            chip = Label(name, "chip")
            top.addWidget(chip, alignment=Qt.AlignmentFlag.AlignTop)
        parts = (top, self._sides, self._own, self._right, self._complaint, self._offer)
        inside = column(*parts, gap=12, margins=(20, 16, 20, 16))
        inside.setAlignment(self._offer, Qt.AlignmentFlag.AlignLeft)
        self.setLayout(inside)
        self.setAccessibleName(text)

    def show_waiting(self, sides: Collection[Side]) -> None:
        """Shows these sides as waiting for their answers."""
        self._complaint.hide()
        self._offer.hide()
        self._sides.show()
        for side, answer in self._answers.items():
            if side in sides:
                answer.show_waiting()
            answer.setVisible(side in sides or answer.there)

    def grow(self, side: Side, text: str) -> None:
        self._answers[side].grow(text)

    def say(self, said: Said) -> None:
        self._answers[said.side].say(said)

    def show_own_answer(self, answer: str | None, solved: bool | None) -> None:
        """Shows a person's answer, and the verdict once it is known."""
        self._complaint.hide()
        if answer is not None:
            self._mine.say(breakable(answer))
        say_verdict(self._judged, solved)
        self._own.show()

    def offer(self, text: str, together: bool, give: Give) -> None:
        """Offers the person's right answer for teaching."""
        self.may = ExampleOffer(text, together, give)
        layout = self.layout()
        assert layout is not None
        layout.addWidget(self.may)

    def given(self, sentence: str = "") -> None:
        """Shows that the answer waits for the model to learn it, or the sentence saying why it does not."""
        if self.may is not None:
            self.may.failed(sentence) if sentence else self.may.given()

    def solution(self, text: str) -> None:
        self._right.tell(tr("A right answer: {text}", text=breakable(text)))

    def done(self, sentence: str) -> None:
        """Ends the exchange: sides without an answer say so. `sentence` is the reason, if something is
        missing."""
        for answer in self._answers.values():
            answer.give_up()
        self._own.setVisible(bool(self._judged.text()))
        if sentence:
            self._complaint.tell(sentence)

    def refuse(self, sentence: str, offer: str, take: Callable[[], None]) -> None:
        """Shows why nothing was asked, and what the person can do instead."""
        self._sides.hide()
        self._complaint.look("soft")
        self._complaint.setContentsMargins(0, 0, 0, 0)
        self._complaint.tell(sentence)
        self._offer.setText(offer)
        self._offer.clicked.connect(take)
        self._offer.show()


class AnswerCard(Card):
    """One side's answer, with its verdict."""

    def __init__(self, name: str, as_code: bool) -> None:
        super().__init__("quiet")
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._name, self._verdict = Label(name, "strong"), Label("", "good")
        self._text, self._foot = Label("", wrap=True), Label("", "faint")
        if as_code:
            self._text.setStyleSheet(f'font-family: "{mono(BODY).family()}"; font-size: {BODY}px;')
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        head = row(self._name, 1, self._verdict, gap=6)
        self.setLayout(column(head, self._text, 1, self._foot, gap=8, margins=(14, 12, 14, 10)))
        self._open = False
        self.there = False
        """Something was said."""
        self._verdict.hide()

    def show_waiting(self) -> None:
        self._open = True
        self._text.look("soft")
        self._text.say(tr("thinking …"))
        self._foot.say("")
        say_verdict(self._verdict, None)

    def grow(self, text: str) -> None:
        """Shows the part of the answer generated so far."""
        self._text.look("")
        self._text.say(breakable(safe_text(text)) + " ▌")

    def say(self, said: Said) -> None:
        self._open, self.there = False, True
        say_verdict(self._verdict, said.solved)
        if said.side == "after":
            self._name.say(
                counted("After {n} round", "After {n} rounds", said.learned)
                if said.learned
                else tr("After (nothing learned yet)")
            )
        self._text.look("")
        self._text.say((breakable(safe_text(said.text)) or tr("(empty)")) + ("" if said.finished else " …"))
        tokens = counted("{n} token", "{n} tokens", said.tokens)
        seconds = tr("{n} s", n=number(said.seconds, 1))
        unfinished = tr("stopped") if said.stopped else tr("cut off: too long")
        cut = [] if said.finished else [unfinished]
        self._foot.say("  ·  ".join([tokens, seconds, *cut]))
        self.setAccessibleName(
            ", ".join(filter(None, (self._name.text(), self._verdict.text(), self._text.text())))
        )

    def give_up(self) -> None:
        if self._open:
            self._open = False
            self._text.say(tr("no answer"))


class ExampleOffer(Card):
    """Shows the exact text that would be taught, and what it may be used for. Nothing is used unless a button
    is pressed."""

    def __init__(self, text: str, together: bool, give: Give) -> None:
        super().__init__("quiet")
        self._give = give
        words = Label(safe_text(text), wrap=True)
        words.setStyleSheet(f'font-family: "{mono(BODY).family()}"; font-size: {BODY}px;')
        words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        words.setAccessibleName(tr("The text that would teach: {text}", text=safe_text(text)))
        shared = tr("Word for word, nothing else. In the swarm it's marked as a person's answer.")
        stays = tr("Word for word, nothing else. It stays on this computer.")
        self._about = Label(shared if together else stays, "faint", wrap=True)
        asked = [button(tr("Teach my model"), lambda: self._say_yes(False))]
        if together:
            asked.insert(0, button(tr("Teach and share"), lambda: self._say_yes(True), "primary"))
        self._buttons = boxed(row(*asked, button(tr("Keep it to myself"), self._no), 1, gap=8))
        heading = Label(tr("Right! May your answer teach?"), "strong")
        self.setLayout(column(heading, words, self._about, self._buttons, gap=9, margins=(14, 12, 14, 12)))

    def _say_yes(self, share: bool) -> None:
        self._buttons.hide()
        self._about.say(tr("Saving it …"))
        self._give(True, share)

    def _no(self) -> None:
        self._buttons.hide()
        self._about.say(tr("It stays with you."))

    def given(self) -> None:
        self._about.say(
            tr("Thank you. Your model looks at it in its next round; it learns if it failed that puzzle.")
        )

    def failed(self, sentence: str) -> None:
        self._buttons.show()
        self._about.say(sentence)


def breakable(text: str, longest: int = _LONGEST_WORD) -> str:
    """Makes words longer than `longest` characters breakable, so that a label does not grow wider than the
    window.

    >>> breakable("a " + 3 * "x" ).isprintable(), len(breakable(100 * "x"))
    (True, 102)
    """
    return re.sub(rf"\S{{{longest}}}", "\\g<0>\u200b", text)


def say_verdict(label: Label, solved: bool | None) -> None:
    """Shows right or wrong, by a sign and in words; nothing while unknown."""
    label.look("bad" if solved is False else "good")
    label.tell("" if solved is None else tr("✓ right") if solved else tr("✗ wrong"))
