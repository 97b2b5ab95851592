"""The card of one of the owner's question sets: how well the model knows it, and what can be done with it: ask
it, use it elsewhere, teach it more."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from PySide6.QtWidgets import QMenu

from app.node.data.question_sets import KeptSet
from app.node.models.skills import KnownSkill
from app.ui.frame.frame import Actions
from app.ui.language.texts import counted, number, tr
from app.ui.skills.answering import Teach
from app.ui.skills.labelling import LabelPanel
from app.ui.skills.panels import AskPanel, ElsewherePanel, SkillPanel, TeachPanel
from app.ui.theme import Theme
from app.ui.view import words
from app.ui.view.view import NodeStatus, View
from app.ui.widgets.bend import Bend
from app.ui.widgets.pieces import Card, Label, boxed, button, column, progress_bar, relook, row
from app.ui.widgets.selecting import Switch


class SkillCard(Card):
    """`learn` turns learning it on or off, `remove` deletes it, `changed` is called when who may have its
    answers changed; `teach` adds rows, `read` asks for a file of them."""

    def __init__(
        self,
        theme: Theme,
        ask: Actions,
        kept: KeptSet,
        learn: Callable[[bool], None],
        remove: Callable[[], None],
        changed: Callable[[], None],
        teach: Teach,
        read: Callable[[], None],
    ) -> None:
        super().__init__()
        self._theme, self._ask, self._kept, self._changed = theme, ask, kept, changed
        self._teach, self._read = teach, read
        self._known: KnownSkill | None = None
        name = kept.made.name
        self._switch = Switch(theme, tr("Learn {name}", name=name))
        self._switch.toggled.connect(learn)
        self._standing, self._facts = Label("", wrap=True), Label("", "soft", wrap=True)
        self._chip = Label("", "chip")
        self._bar = progress_bar(tr("Progress of this step"))
        more = button(tr("More"), lambda: None, "flat", tr("More about {name}", name=name))
        menu = QMenu(more)
        self._share = menu.addAction("", self._turn_sharing)
        menu.addAction(tr("Delete"), remove)
        more.setMenu(menu)
        self._buttons = {
            "ask": button(tr("Ask it"), lambda: self.open("ask"), "primary", tr("Asks {name}", name=name)),
            "label": button(tr("Label a table"), lambda: self.open("label")),
            "elsewhere": button(tr("Use it elsewhere"), lambda: self.open("elsewhere")),
            "teach": button(tr("Teach it more"), lambda: self.open("teach")),
        }
        self._panels: dict[str, SkillPanel] = {}
        self._place = column(gap=0)
        head = row(
            Label(name, "heading"), self._chip, 1, more, Label(tr("Learn"), "soft"), self._switch, gap=10
        )
        self._doing = boxed(Bend(*self._buttons.values(), 1, gap=8))
        said = (self._standing, self._facts, self._bar)
        self.setLayout(column(head, *said, self._doing, boxed(self._place), gap=8, margins=(20, 16, 20, 16)))
        for part in (self._bar, self._chip):
            part.hide()

    @property
    def switch(self) -> Switch:
        return self._switch

    def show_skill(self, kept: KeptSet, known: KnownSkill | None, on: bool, private: bool) -> None:
        """Shows another state. `on`: it is to be learned; `private`: a private swarm may have its answers."""
        self._kept, self._known = kept, known
        self._switch.show_on(on)
        measured = known is not None and known.measured is not None
        self._standing.tell(standing(known) if known is not None and measured else "")
        self._share.setVisible(private)
        self._share.setText(tr("Stop sharing") if kept.shares_answers else tr("Share with members"))
        self._doing.setVisible(known is not None)
        if known is not None:
            for panel in self._panels.values():
                panel.show_skill(known)

    def show_view(self, view: View) -> None:
        chosen = view.skill == self._kept.made.family_name
        learning = chosen and view.state is NodeStatus.LEARNING
        self._chip.tell(tr("Learning now") if learning else "")
        self._bar.setVisible(learning and bool(view.total))
        line = words.reason(view, time.time()) if chosen else ""
        if learning:
            line = ": ".join(filter(None, (words.round_line(view), words.step_line(view))))
        rows = counted("{n} row", "{n} rows", self._kept.made.distinct)
        self._facts.say(" · ".join(filter(None, (rows, line))))
        if learning:
            self._bar.setMaximum(max(1, view.total))
            self._bar.setValue(min(view.done, view.total))
        if view.models is not None:
            for panel in self._panels.values():
                if isinstance(panel, ElsewherePanel):
                    panel.show_holdings(view.models)

    def open(self, which: str) -> None:
        """Opens a panel and closes the others; closes it if it is open."""
        if self._known is None:
            return
        if which not in self._panels:
            self._panels[which] = self._made(which, self._known)
            self._place.addWidget(self._panels[which])
            self._panels[which].hide()
        for name, panel in self._panels.items():
            panel.setVisible(name == which and panel.isHidden())
        for name, one in self._buttons.items():
            opened = name in self._panels and not self._panels[name].isHidden()
            relook(one, "primary" if opened or (name == "ask" and not self._opened) else "")
        if not self._panels[which].isHidden():
            self._panels[which].setFocus()

    @property
    def _opened(self) -> bool:
        return any(not panel.isHidden() for panel in self._panels.values())

    def _made(self, which: str, known: KnownSkill) -> SkillPanel:
        if which == "ask":
            return AskPanel(self._theme, self._ask, known, self._teach)
        if which == "label":
            return LabelPanel(self._theme, self._ask, known)
        if which == "elsewhere":
            return ElsewherePanel(self._theme, self._ask, known)
        return TeachPanel(self._theme, self._ask, known, self._teach, self._read)

    def _turn_sharing(self) -> None:
        with suppress(OSError):
            self._kept.share(not self._kept.shares_answers)
        self._changed()


def standing(known: KnownSkill) -> str:
    """Returns the sentence of how many held-out rows are right, beside what the most frequent answer alone
    gets."""
    right, of = known.right
    said = tr("{n} of {of} rows kept aside are right.", n=number(right), of=number(of))
    share, answer = known.made.constant_share()
    if share >= 0.2:
        said += " " + tr("“{answer}” alone: {n}.", answer=answer, n=number(round(share * of)))
    if known.measured is not None and known.measured.counted is not None:
        said += " " + tr("Counting letters: {n}.", n=number(known.measured.counted))
    return said
