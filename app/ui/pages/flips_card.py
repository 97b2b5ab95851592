"""Did it help? The held-out questions that flipped since the first measurement, each with both answers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QFrame, QWidget

from app.common.text import safe
from app.node.history import flips
from app.node.history.flips import Flips, Pair
from app.node.record import figures
from app.ui.language.spoken import spoken
from app.ui.language.texts import counted, number, tr
from app.ui.view.view import View
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import Label, boxed, button, column, row, rule

_SHOWN = 12
"""Maximum flips listed of each kind."""
_SURE = 0.05
GAINED, LOST = "gained", "lost"


class FlipsCard(QFrame):
    """On Skills, for puzzles and for the owner's questions alike. Hidden before the second measurement."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("look", "card")
        self._of: tuple[str, str, int] = ("", "", -1)
        self._found: Flips | None = None
        self._open = ""
        self._headline, self._sure, self._speech = Label("", "strong", wrap=True), *_soft(2)
        self._buttons = {which: button("", partial(self._toggle, which), "flat") for which in (GAINED, LOST)}
        save = (
            button(tr("Save as CSV"), self._save_csv, "flat"),
            button(tr("Save picture"), self._save_png, "flat"),
        )
        self._list = column(gap=10)
        head = Bend(Label(tr("Before and after"), "heading"), 1, *save, gap=8)
        self.setLayout(
            column(
                *(head, self._headline, self._sure, self._speech),
                row(*self._buttons.values(), 1, gap=8),
                boxed(self._list),
                gap=10,
                margins=(20, 18, 20, 18),
            )
        )
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
        self._headline.say(headline(self._found))
        self._sure.say(certainty(self._found))
        rise = last.everyday_rise
        self._speech.tell(spoken(figures.speech_sentence(rise)) if rise is not None else "")
        gained, lost = len(self._found.gained), len(self._found.lost)
        self._buttons[GAINED].setText(counted("{n} now right", "{n} now right", gained))
        self._buttons[LOST].setText(counted("{n} now wrong", "{n} now wrong", lost))
        self._show_list()

    def _toggle(self, which: str) -> None:
        self._open = "" if self._open == which else which
        self._show_list()

    def _show_list(self) -> None:
        while (item := self._list.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        if self._found is None or not self._open:
            return
        every = self._found.gained if self._open == GAINED else self._found.lost
        for one in every[:_SHOWN]:
            self._list.addWidget(_pair(one))
        if len(every) > _SHOWN:
            self._list.addWidget(Label(tr("The CSV has all of them."), "soft"))

    def _save_csv(self) -> None:
        if self._found is not None and (path := self._where("csv")):
            try:
                path.write_text(self._found.csv(), encoding="utf-8")
            except OSError as error:
                self._sure.say(tr("{path} can't be written ({why}).", path=path, why=error.strerror or ""))

    def _save_png(self) -> None:
        if path := self._where("png"):
            self.grab().save(str(path))

    def _where(self, ending: str) -> Path | None:
        path, _ = QFileDialog.getSaveFileName(self, tr("Save"), f"shoal-before-after.{ending}", f"*.{ending}")
        return Path(path) if path else None


def headline(found: Flips) -> str:
    """
    >>> pairs = tuple(Pair(question="", before="", after="", was=n < 2, now=n > 0) for n in range(10))
    >>> headline(Flips(first=0, latest=9, pairs=pairs, contents=tuple(range(10))))
    'Solves 90 of 100 new questions, 20 at round 0.'
    """
    many = max(1, len(found.pairs))
    now, was = (sum(one.now for one in found.pairs), sum(one.was for one in found.pairs))
    return tr(
        "Solves {now} of 100 new questions, {was} at round {round}.",
        now=number(round(100 * now / many)),
        was=number(round(100 * was / many)),
        round=number(found.first),
    )


def certainty(found: Flips) -> str:
    """The paired difference with twice its standard error, and whether chance explains it."""
    points, error = number(round(100 * found.difference)), number(round(200 * found.error))
    if found.chance > _SURE:
        return tr(
            "{points} points, give or take {error}. That could still be chance.", points=points, error=error
        )
    return tr("{points} points, give or take {error}. That's more than chance.", points=points, error=error)


def _soft(count: int) -> list[Label]:
    return [Label("", "soft", wrap=True) for _ in range(count)]


def _pair(one: Pair) -> QWidget:
    return boxed(
        column(
            rule(),
            Label(safe(one.question), "strong", wrap=True),
            Label(tr("Before: {answer}", answer=safe(one.before)), "soft", wrap=True),
            Label(tr("After: {answer}", answer=safe(one.after)), "soft", wrap=True),
            gap=4,
        )
    )
