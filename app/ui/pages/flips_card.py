"""Did it help? The held-out questions that flipped since the first measurement, each with both answers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QWidget

from app.common.text import safe
from app.node.history import flips
from app.node.history.flips import AnswerPair, Flips
from app.node.models.result_page import certainty, headline
from app.ui.frame.frame import Actions
from app.ui.language.texts import counted, number, tr
from app.ui.view.view import View
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import Card, Label, boxed, button, column, empty, place_to_save, row, rule

_SHOWN = 12
"""Maximum flips listed of each kind."""
GAINED, LOST = "gained", "lost"


class FlipsCard(Card):
    """On Skills, for puzzles and for the owner's questions alike. Hidden before the second measurement."""

    def __init__(self, actions: Actions) -> None:
        super().__init__()
        self._of: tuple[str, str, int] = ("", "", -1)
        self._found: Flips | None = None
        self._open = ""
        self._headline = Label("", "strong", wrap=True)
        self._sure, self._saved = (Label("", "soft", wrap=True) for _ in range(2))
        self._buttons = {which: button("", partial(self._toggle, which), "flat") for which in (GAINED, LOST)}
        signed, result = tr("A signed file, and a page to show"), lambda: actions.models.result(self._say)
        save = (
            button(tr("Save as CSV"), self._save_csv, "flat"),
            button(tr("Save a result"), result, "flat", signed),
        )
        self._list = column(gap=10)
        head = Bend(Label(tr("Before and after"), "heading"), 1, *save, gap=8)
        said = (head, self._saved, self._headline, self._sure)
        below = (row(*self._buttons.values(), 1, gap=8), boxed(self._list))
        self.setLayout(column(*said, *below, gap=10, margins=(20, 18, 20, 18)))
        self._saved.hide()
        self.hide()

    def show_view(self, view: View) -> None:
        last = view.curve[-1] if view.curve else None
        of = (view.home, last.questions_mark, last.round) if last is not None else ("", "", -1)
        if of == self._of:
            return
        self._of = of
        self._found = flips.newest(Path(of[0]), of[1], of[2]) if last is not None and view.home else None
        self.setVisible(self._found is not None)
        if self._found is None or last is None:
            return
        found, many = self._found, max(1, len(self._found.pairs))
        now, was = (sum(one.now for one in found.pairs), sum(one.was for one in found.pairs))
        self._headline.say(headline(now / many, was / many, found.first, tr, number))
        sure = certainty(found.difference, found.error, found.chance, tr, number)
        if many < last.questions:  # then the curve counts others too, and shows another figure
            sure += " " + tr("Compared on the {n} puzzles it was asked both times.", n=number(many))
        self._sure.say(sure)
        gained, lost = len(self._found.gained), len(self._found.lost)
        self._buttons[GAINED].setText(counted("{n} now right", "{n} now right", gained))
        self._buttons[LOST].setText(counted("{n} now wrong", "{n} now wrong", lost))
        self._show_list()

    def _toggle(self, which: str) -> None:
        self._open = "" if self._open == which else which
        self._show_list()

    def _show_list(self) -> None:
        empty(self._list)
        if self._found is None or not self._open:
            return
        every = self._found.gained if self._open == GAINED else self._found.lost
        # Of a small set each question is asked several times; one answer shows enough.
        different = list({one.question: one for one in reversed(every)}.values())[::-1][:_SHOWN]
        for one in different:
            self._list.addWidget(_pair(one))
        if len(every) > len(different):
            self._list.addWidget(Label(tr("The CSV has all of them."), "soft"))

    def _save_csv(self) -> None:
        if self._found is None:
            return
        path = place_to_save(self, tr("Save"), "shoal-before-after.csv")
        if path is None:
            return
        try:
            path.write_text(self._found.csv(), encoding="utf-8")
        except OSError as error:
            self._say(tr("{path} can't be written ({why}).", path=path, why=error.strerror or ""), False)

    def _say(self, said: str, done: bool) -> None:
        self._saved.look("soft" if done else "bad")
        self._saved.tell(said)


def _pair(one: AnswerPair) -> QWidget:
    said = tr("Before: {answer}", answer=safe(one.before)), tr("After: {answer}", answer=safe(one.after))
    answers = (Label(answer, "soft", wrap=True) for answer in said)
    return boxed(column(rule(), Label(safe(one.question), "strong", wrap=True), *answers, gap=4))
