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
from app.ui.language.texts import counted, number, tr, translated
from app.ui.skills.adding import OwnQuestions
from app.ui.theme import Theme
from app.ui.view import words
from app.ui.view.view import View
from app.ui.widgets.pieces import (
    Empty,
    Label,
    boxed,
    column,
    search,
    stack,
)

MIN_FAMILIES_FOR_SEARCH = 9
"""Minimum number of families for a search field to be shown."""


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
        self.own = OwnQuestions(theme, actions)
        self.own.changed.connect(self._show_stack)
        self.add(self.own)
        self.add(self._stack, 1)
        self.body.addStretch()

    def show_view(self, view: View) -> None:
        self.own.show_view(view)
        puzzles = tuple(one for one in view.families if one.kind != FamilyKind.YOURS)
        self._stack.setCurrentIndex(1 if puzzles else 0)
        rise = view.curve[-1].everyday_rise if view.curve and view.safe_round else None
        self._speech.tell(translated(records.language_sentence(rise)) if rise is not None else "")
        self._search.setVisible(len(view.families) + len(view.waiting) >= MIN_FAMILIES_FOR_SEARCH)
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
