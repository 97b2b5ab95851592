"""What others showed this model, and what its answers did for others: a quiet card on the page Swarm."""

from __future__ import annotations

from functools import partial

from PySide6.QtWidgets import QFrame, QVBoxLayout

from app.common.text import safe_line
from app.node.history.aha import Aha, ahas
from app.sapo.families import FAMILIES
from app.ui.frame.frame import Actions
from app.ui.language.texts import counted, number, span, tr
from app.ui.view.view import View
from app.ui.widgets.pieces import Elided, Label, boxed, button, column, row

SHOWN = 3
"""The latest; History keeps every round."""
AGAIN = 5
"""Rounds until it is looked for again: a claim takes dozens of them, and a long history takes its time."""


class AhaCard(QFrame):
    def __init__(self, actions: Actions) -> None:
        super().__init__()
        self.setProperty("look", "card")
        self._actions = actions
        self._helped = Label("", "strong")
        self._lines: QVBoxLayout = column(gap=6)
        self._list = boxed(self._lines)
        self.setLayout(column(self._helped, self._list, gap=8, margins=(18, 12, 14, 12)))
        self._known: tuple[Aha, ...] = ()
        self._looked: tuple[int, int] | None = None
        self.hide()

    def show_view(self, view: View) -> None:
        choices, swarm = self._actions.choices, view.swarm
        thanks = bool(view.rules.get("receipts", True)) and swarm is not None and swarm.helped > 0
        if thanks and swarm is not None:
            self._helped.say(helped(swarm.helped))
        self._helped.setVisible(thanks)
        known = self._look(view) if choices["ahas"] else ()
        if known != self._known:
            self._known = known
            self._fill()
        self._list.setVisible(bool(known))
        self.setVisible(thanks or bool(known))

    def _look(self, view: View) -> tuple[Aha, ...]:
        """The latest first."""
        last = view.rounds[-1].round // AGAIN if view.rounds else 0
        mark = (last, len(view.rounds) // AGAIN)
        if mark == self._looked:
            return self._known
        self._looked = mark
        return tuple(ahas(view.rounds)[: -SHOWN - 1 : -1])

    def _fill(self) -> None:
        while self._lines.count():
            item = self._lines.takeAt(0)
            if item is not None and (line := item.widget()) is not None:
                line.deleteLater()
        for one in self._known:
            said = Elided(told(one))
            said.setAccessibleDescription(proof(one))
            said.setToolTip(proof(one))
            see = button(tr("See the answers"), partial(self._open, one))
            see.setAccessibleName(tr("See the answers of {peer}", peer=safe_line(one.peer)))
            line = boxed(row(column(said, Label(proof(one), "faint"), gap=0), see, gap=10, fill=0))
            self._lines.addWidget(line)

    def _open(self, one: Aha) -> None:
        self._actions.show_group(one.shown, one.family, one.peer)


def told(one: Aha) -> str:
    """
    >>> told(Aha(peer="cosy-firefly-7467", family="count_bits", level=1, shown=40, solved=41, seconds=40.0,
    ...          failed=320, right=12, answered=24, p=0.02, at=0.0))
    'cosy-firefly-7467 showed a way to solve “Counting bits”; 40 s later yours solved its first.'
    """
    title = tr(FAMILIES[one.family].title) if one.family in FAMILIES else one.family
    return tr(
        "{peer} showed a way to solve “{family}”; {span} later yours solved its first.",
        peer=safe_line(one.peer),
        family=title,
        span=span(one.seconds),
    )


def proof(one: Aha) -> str:
    """Why it is claimed."""
    return tr(
        "Before: {failed} answers, all wrong. Right after: {right} of {answered}. By chance in {p} of 1,000.",
        failed=number(one.failed),
        right=number(one.right),
        answered=number(one.answered),
        p=number(max(1, round(1000 * one.p))),
    )


def helped(models: int) -> str:
    return counted("Your answers helped {n} model today.", "Your answers helped {n} models today.", models)
