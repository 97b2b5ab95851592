"""The page Live: questions and answers as they arrive, the model's own and its peers', each with its
verdict."""

from __future__ import annotations

from collections.abc import Sequence

from app.node.record.records import GroupRow
from app.ui.frame.frame import Actions, Page
from app.ui.language.texts import number, tr
from app.ui.privacy.group import Feed, GroupCard, family_title, with_question
from app.ui.theme import Theme
from app.ui.view.view import View
from app.ui.widgets.pieces import Empty, button, column
from app.ui.widgets.selecting import Picker, Segments

ALL, OWN, PEERS = "all", "own", "peers"
SHOWN = 20
"""Maximum puzzles shown; the filters choose among all that are stored."""


class Live(Page):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("Live"))
        self._view = View()
        self._source = Segments([(ALL, tr("All")), (OWN, tr("Own")), (PEERS, tr("Peers"))], tr("Whose answers"))
        self._source.chosen.connect(lambda _: self._from_top())
        self._family = Picker(theme, tr("Kind of puzzle"))
        self._family.setMinimumWidth(190)
        self._family.addItem(tr("All kinds"), "")
        self._family.currentIndexChanged.connect(lambda _: self._from_top())
        self._round = 0
        """The only one whose answers are shown; 0 for all."""
        self._only = button("", self._narrow, "", tr("Show the answers of every round"))
        self._only.hide()
        self._feed = Feed(GroupCard, SHOWN)
        self._feed.newer.clicked.connect(self._from_top)
        for part in (self._feed.newer, self._only, self._source, self._family):
            self.header.addWidget(part)
        soon = tr("Soon every puzzle appears here, with all of your model's answers.")
        self._none = Empty(theme, "live", tr("No answers yet"), soon)
        self._nothing_left = Empty(theme, "search", "", "", button(tr("Show everything"), self._narrow))
        self.add(column(self._feed, self._none, self._nothing_left, gap=0))
        self.body.addStretch(1)
        self._filter()

    def show_view(self, view: View) -> None:
        same = view.groups is self._view.groups and view.questions is self._view.questions
        self._view = view
        if same and view.groups:
            return
        self._source.setVisible(bool(view.groups))
        self._family.setVisible(bool(view.groups))
        known = {self._family.itemData(at) for at in range(self._family.count())}
        for name in sorted({group.family for group in view.groups} - known, key=family_title):
            self._family.addItem(family_title(name), name)
        self._filter()

    def show_family(self, name: str) -> None:
        """Shows only this family's answers; all families' if none are known."""
        self._narrow(name, self._round)

    def show_round(self, round: int) -> None:
        """Shows only this round's answers, if they are still stored."""
        self._narrow("", round)

    def _narrow(self, family: str = "", round: int = 0) -> None:
        """Filters the list by one family or one round, or shows all."""
        self._round = round
        self._source.choose(ALL)
        self._family.setCurrentIndex(max(0, self._family.findData(family)))
        self._from_top()

    def _from_top(self) -> None:
        """Shows what is newest by now."""
        self._feed.release()
        self.verticalScrollBar().setValue(0)
        self._filter()

    def _filter(self) -> None:
        self._only.setVisible(self._round > 0)
        self._only.setText(tr("Round {n}  ✕", n=number(self._round)))
        self._only.setAccessibleName(tr("Round {n} only. Show all rounds.", n=number(self._round)))
        gone = tr("These answers are gone"), tr("Shoal keeps the answers of the latest rounds.")
        none = tr("Nothing here yet"), tr("Pick another kind of puzzle, or answers from everyone.")
        title, sentence = gone if self._round else none
        self._nothing_left.title.say(title)
        self._nothing_left.sentence.say(sentence)
        reads = self.verticalScrollBar().value() > 0  # nothing moves away under somebody who reads
        found = [group for group in self._feed.steady(self._view.groups, reads) if self._wanted(group)]
        self._feed.setVisible(bool(found))
        self._none.setVisible(not self._view.groups)
        self._nothing_left.setVisible(bool(self._view.groups) and not found)
        self._show(found)

    def _wanted(self, group: GroupRow) -> bool:
        source, family = self._source.value, self._family.currentData()
        return (
            (not family or group.family == family)
            and (not self._round or group.round == self._round)
            and (source == ALL or (group.peer is None) == (source == OWN))
        )

    def _show(self, found: Sequence[GroupRow]) -> None:
        placed = self._feed.place(found)
        for card, group in placed:
            card.show_group(with_question(self._view.questions, group))
        if unknown := [group.coordinates for _, group in placed if group.question is None]:
            self.ask.want_questions(unknown)
