"""Skills: what the model can do, family by family, with the uncertainty of the held-out questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtWidgets import QWidget

from app.node.record import records
from app.node.record.snapshot import FamilyView
from app.sapo.families.family import FamilyKind
from app.ui.charts.tile import Tiles
from app.ui.frame.frame import Actions, Page
from app.ui.language.spoken import spoken
from app.ui.language.texts import counted, number, tr
from app.ui.pages.flips_card import FlipsCard
from app.ui.pages.own_questions import OwnQuestions
from app.ui.theme import Theme
from app.ui.view import words
from app.ui.view.view import View
from app.ui.widgets.pieces import Empty, Label, boxed, column, search, stack

SEARCHED = 9
"""Number of families from which on there is a search field."""


class Skills(Page):
    lasting = False

    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("Skills"))
        self._shown: tuple[tuple[FamilyView, ...], tuple[str, ...]] = ((), ())
        kinds = sorted(FamilyKind, key=lambda kind: kind is not FamilyKind.YOURS)
        self._groups = {kind: KindSection(theme, kind) for kind in (*map(str, kinds), "")}
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
        none = Empty(theme, "skills", tr("No skills measured yet"), soon)
        self._stack = stack(none, boxed(column(*parts, 1, gap=18)))
        self.own, self._flips = OwnQuestions(theme, actions), FlipsCard(actions)
        self.add(self.own)
        self.add(self._flips)
        self.add(self._stack, 1)

    def show_view(self, view: View) -> None:
        self.own.show_view(view)
        self._flips.show_view(view)
        self._stack.setCurrentIndex(1 if view.families else 0)
        rise = view.curve[-1].everyday_rise if view.curve and view.safe_round else None
        self._speech.tell(spoken(records.speech_sentence(rise)) if rise is not None else "")
        self._search.setVisible(len(view.families) + len(view.waiting) >= SEARCHED)
        now = (view.families, view.waiting)
        if now != self._shown:
            self._shown = now
            self._show_groups()

    def _show_groups(self) -> None:
        """Shows the families that match the search, by kind."""
        families, waiting = self._shown
        learned = sum(bool(family.learned_from) for family in families)
        counts = tr(
            "Begun alone: {own}. From other models: {others}. Too hard yet: {hard}.",
            own=number(len(families) - learned),
            others=number(learned),
            hard=number(len(waiting)),
        )
        self._sum.tell(counts if learned else "")
        sought = self._search.text().strip().casefold()
        found = [family for family in families if sought in f"{tr(family.kind)} {family.title}".casefold()]
        for kind, group in self._groups.items():
            group.show_families([family for family in found if family.kind == kind], self.ask.show_family)
        later = [title for title in waiting if sought in title.casefold()]
        self._waiting.tell(tr("Too hard yet: {families}.", families=", ".join(later)) if later else "")
        self._nothing.tell("" if found or later else tr("No puzzle is called that."))


class KindSection(QWidget):
    """The families of one kind."""

    def __init__(self, theme: Theme, kind: str) -> None:
        super().__init__()
        self._tiles = Tiles(theme)
        self.setLayout(column(Label(tr(kind) if kind else tr("Other"), "heading"), self._tiles, gap=10))

    def show_families(self, families: Sequence[FamilyView], press: Callable[[str], object]) -> None:
        self.setVisible(bool(families))
        for tile, family in zip(self._tiles.tiles(len(families)), families, strict=True):
            tile.say(family, since(family), words.guessed(family.name))
            tile.press = partial(press, family.name)


def since(family: FamilyView) -> str:
    """The peer it learned the family from; else the latest level reached, and when."""
    if family.learned_from:
        others = len(family.learned_from) - 1
        name = family.learned_from[0]
        if others:
            return counted(
                "Learned from {name} and {n} other", "Learned from {name} and {n} others", others, name=name
            )
        return tr("Learned from {name}", name=name)
    if not family.milestones:
        return tr("No right answer in practice yet")
    last = family.milestones[-1]
    when = words.day(last.at)
    if last.level < 0:
        return tr("First solved in practice on {day}", day=when)
    if last.level != family.level:  # it went back since
        now = tr("Level {n} now", n=family.level + 1)
        return tr("{now}, reached {n} on {day}", now=now, n=last.level + 1, day=when)
    return tr("Level {n} since {day}", n=last.level + 1, day=when)
