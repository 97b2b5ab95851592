"""Skills: what the model can do, family by family, with the uncertainty of the held-out questions; and did it
help: the questions that flipped since the first measurement, each with both answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QWidget

from app.common.text import safe
from app.node.history import flips
from app.node.history.flips import AnswerPair, Flips
from app.node.models.result_page import certainty, headline
from app.node.record import records
from app.node.record.snapshot import FamilyView
from app.sapo.families.family import FamilyKind
from app.ui.charts.tile import Tiles
from app.ui.frame.frame import Actions, Page
from app.ui.language.texts import counted, number, tr, translated
from app.ui.skills.adding import OwnQuestions
from app.ui.theme import Theme
from app.ui.view import words
from app.ui.view.view import View
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import (
    Card,
    Empty,
    Label,
    boxed,
    button,
    clear_layout,
    column,
    place_to_save,
    row,
    rule,
    search,
    stack,
)

SEARCHED = 9
"""Minimum number of families for a search field to be shown."""
_SHOWN = 12
"""Maximum flips listed of each kind."""
GAINED, LOST = "gained", "lost"


class Skills(Page):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("Skills"))
        self._shown: tuple[tuple[FamilyView, ...], tuple[str, ...]] = ((), ())
        kinds = [str(kind) for kind in FamilyKind if kind is not FamilyKind.YOURS]
        self._groups = {kind: KindSection(theme, kind) for kind in (*kinds, "")}
        self._search = search(tr("Find a puzzle"), lambda _: self._show_groups(), width=200)
        self._search.hide()
        self.header.addWidget(self._search)
        self._nothing = Label("", "soft", wrap=True)
        solves = tr(
            "How many new puzzles it solves. The shaded part shows how sure that is, the tick where it started."
        )
        about = Label(solves, "soft", wrap=True)
        self._speech = Label("", "soft", wrap=True)
        self._waiting, self._sum = Label("", "soft", wrap=True), Label("", "strong")
        soon = tr("The first measurement brings a tile for every kind of puzzle.")
        parts = (self._sum, about, *self._groups.values(), self._nothing, self._waiting, self._speech)
        none = Empty(theme, "skills", tr("No puzzles measured yet"), soon)
        self._stack = stack(none, boxed(column(*parts, 1, gap=18)))
        self.own, self._flips = OwnQuestions(theme, actions), FlipsCard(actions)
        self.own.changed.connect(self._show_stack)
        self.add(self.own)
        self.add(self._flips)
        self.add(self._stack, 1)
        self.body.addStretch()

    def show_view(self, view: View) -> None:
        self.own.show_view(view)
        self._flips.show_view(view)
        puzzles = tuple(one for one in view.families if one.kind != FamilyKind.YOURS)
        self._stack.setCurrentIndex(1 if puzzles else 0)
        rise = view.curve[-1].everyday_rise if view.curve and view.safe_round else None
        self._speech.tell(translated(records.speech_sentence(rise)) if rise is not None else "")
        self._search.setVisible(len(view.families) + len(view.waiting) >= SEARCHED)
        now = (puzzles, view.waiting)
        if now != self._shown:
            self._shown = now
            self._show_groups()
        self._show_stack()

    def _show_stack(self) -> None:
        """Leaves out that no puzzle was measured where rows of the owner's are what is learned."""
        self._stack.setVisible(bool(self._shown[0]) or not self.own.kept)

    def _show_groups(self) -> None:
        """Shows the families that match the search, by kind."""
        families, waiting = self._shown
        learned = sum(bool(family.learned_from) for family in families)
        own, others = number(len(families) - learned), number(learned)
        counts = tr("Begun alone: {own}. From other models: {others}.", own=own, others=others)
        if waiting:  # only a node that runs knows them
            counts += " " + tr("Too hard yet: {hard}.", hard=number(len(waiting)))
        self._sum.tell(counts if learned else "")
        sought = self._search.text().strip().casefold()
        found = [family for family in families if sought in f"{tr(family.kind)} {family.title}".casefold()]
        for kind, group in self._groups.items():
            group.show_families([family for family in found if family.kind == kind], self.ask.show_family)
        later = [title for title in waiting if sought in title.casefold()]
        self._waiting.tell(tr("Too hard yet: {families}.", families=", ".join(later)) if later else "")
        self._nothing.tell("" if found or later else tr("No puzzle is called that."))


class KindSection(QWidget):
    def __init__(self, theme: Theme, kind: str) -> None:
        super().__init__()
        self._tiles = Tiles(theme)
        self.setLayout(column(Label(tr(kind) if kind else tr("Other"), "heading"), self._tiles, gap=10))

    def show_families(self, families: Sequence[FamilyView], press: Callable[[str], object]) -> None:
        self.setVisible(bool(families))
        for tile, family in zip(self._tiles.tiles(len(families)), families, strict=True):
            tile.say(family, since(family), words.guessing_sentence(family.name))
            tile.press = partial(press, family.name)


def since(family: FamilyView) -> str:
    """A sentence that names the peer from whom the model learned the family; empty if it began alone."""
    if not family.learned_from:
        return ""
    others = len(family.learned_from) - 1
    name = family.learned_from[0]
    if others:
        return counted("From {name} and {n} other", "From {name} and {n} others", others, name=name)
    return tr("Learned from {name}", name=name)


class FlipsCard(Card):
    """For puzzles and for the owner's questions alike. Hidden before the second measurement."""

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
        self._headline.say(headline(now / many, was / many, found.first, tr, number, bool(view.skill)))
        sure = certainty(found.difference, found.standard_error, found.p_value, tr, number)
        share, answer = words.guess(view.skill)
        if view.skill and now / many <= share:  # no gain, whatever it began with
            n = number(round(100 * share))
            sure = tr("“{answer}” alone would be right in {n} of 100.", answer=answer, n=n)
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
        clear_layout(self._list)
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
