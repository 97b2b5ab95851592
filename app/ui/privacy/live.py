"""The page Live: questions and answers as they arrive, the model's own and its peers', each with its
verdict."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import msgspec
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QAbstractItemView, QFrame, QListView, QScrollArea

from app.common.text import safe_line, safe_text
from app.node.record.records import GroupRow
from app.sapo.families import FAMILIES
from app.ui.frame.frame import Actions, Page
from app.ui.language.texts import number, tr
from app.ui.privacy.group_list import (
    GroupPainter,
    Groups,
    advantage_sentence,
    author_name,
    distinct_answers,
    family_title,
    question,
    split_completion,
    verdict,
    weight_sentence,
    with_question,
)
from app.ui.theme import Theme
from app.ui.theme.theme import BODY, drawn, mono
from app.ui.view import words
from app.ui.view.view import View
from app.ui.widgets.exchange import breakable
from app.ui.widgets.pieces import Card, Elided, Empty, Label, boxed, button, card, column, row, stack
from app.ui.widgets.selecting import Picker, Segments

ALL, OWN, PEERS = "all", "own", "peers"


class Live(Page):
    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("Live"))
        self._view = self._told = View()
        self._source = Segments([(ALL, tr("All")), (OWN, tr("Own")), (PEERS, tr("Peers"))], tr("Whose answers"))
        self._source.chosen.connect(lambda _: self._filter())
        self._family = Picker(theme, tr("Kind of puzzle"))
        self._family.setMinimumWidth(190)
        self._family.addItem(tr("All kinds"), "")
        self._family.currentIndexChanged.connect(lambda _: self._filter())
        self._round = 0
        """The only one whose answers are shown; 0 for all."""
        self._only = button("", self._narrow, "", tr("Show the answers of every round"))
        self._only.hide()
        for part in (self._only, self._source, self._family):
            self.header.addWidget(part)
        self._groups = Groups()
        self._list = QListView()
        self._list.setModel(self._groups)
        self._list.setItemDelegate(GroupPainter(theme, self._list))
        self._list.setUniformItemSizes(True)
        self._list.setFrameShape(QFrame.Shape.NoFrame)
        self._list.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self._list.setAccessibleName(tr("Puzzles, newest first"))
        self._list.setMouseTracking(True)
        self._list.setStyleSheet("QListView { background: transparent; border: none; }")
        self._list.setMinimumWidth(300)
        self._list.selectionModel().currentChanged.connect(lambda *_: self._show_detail())
        self._detail = Detail(theme)
        box = card(row(self._list, gap=0, margins=(6, 6, 6, 6)), padding=None)
        sides = row(box, self._detail, gap=16)
        sides.setStretch(0, 5)
        sides.setStretch(1, 6)
        soon = tr("Soon every puzzle appears here, with all of your model's answers.")
        self._none = Empty(theme, "live", tr("No answers yet"), soon)
        self._nothing_left = Empty(theme, "search", "", "", button(tr("Show everything"), self._narrow))
        self._stack = stack(self._none, self._nothing_left, boxed(sides))
        self.add(self._stack, 1)

    def show_view(self, view: View) -> None:
        old, self._told = self._told, view
        if view.groups is old.groups and view.questions is old.questions and view.groups:
            return
        if unknown := [one.coordinates for one in view.groups if one.question is None]:
            self.ask.want_questions(unknown)
            view = msgspec.structs.replace(
                view, groups=tuple(map(partial(with_question, view.questions), view.groups))
            )
        self._source.setVisible(bool(view.groups))
        self._family.setVisible(bool(view.groups))
        self._view = view
        known = {self._family.itemData(at) for at in range(self._family.count())}
        for name in sorted({group.family for group in view.groups} - known, key=family_title):
            self._family.addItem(family_title(name), name)
        self._filter()

    def show_family(self, name: str) -> None:
        """Shows only this family's answers; all families' if none are known."""
        self._narrow(name, self._round)

    def show_round(self, round: int) -> None:
        """Shows only this round's answers, if they are still stored."""
        self._list.setCurrentIndex(QModelIndex())
        self._narrow("", round)

    def _narrow(self, family: str = "", round: int = 0) -> None:
        """Filters the list by one family or one round, or shows all."""
        self._round = round
        self._source.choose(ALL)
        self._family.setCurrentIndex(max(0, self._family.findData(family)))
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
        source, family = self._source.value, self._family.currentData()
        kept = [
            group
            for group in self._view.groups
            if (not family or group.family == family)
            and (not self._round or group.round == self._round)
            and (source == ALL or (group.peer is None) == (source == OWN))
        ]
        self._stack.setCurrentIndex(2 if kept else 1 if self._view.groups else 0)
        at = self._list.currentIndex()
        chosen = self._groups.group(at) if at.isValid() else None
        follow = chosen is None or at.row() == 0
        self._groups.show_groups(kept)
        if kept:
            row_ = 0 if follow or chosen is None else _place(chosen, kept)
            self._list.setCurrentIndex(self._groups.index(row_))
        self._show_detail()

    def _show_detail(self) -> None:
        at = self._list.currentIndex()
        self._detail.show_group(self._groups.group(at) if at.isValid() else None)


class Detail(Card):
    """The panel with one question and all its answers."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._title, self._who, self._level = Label("", "heading"), Label("", "chip"), Elided("", "faint")
        self._question = Label("", wrap=True)
        self._question.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._verdict, self._counts = Label("", "caption"), Label("", "caption", wrap=True)
        self._legend = Label(tr("Grey: its working. Label: its answer."), "caption", wrap=True)
        self._answers = column(gap=8)
        self._rows: list[AnswerRow] = []
        head, asked = row(self._title, 1, self._who), (self._level, self._question, self._verdict, self._counts)
        inside = boxed(column(head, *asked, self._answers, self._legend, 1, gap=10, margins=(22, 18, 22, 18)))
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inside)
        inside.setProperty("look", "page")
        area.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setLayout(row(area, margins=(0, 4, 4, 4)))
        self.setMinimumWidth(300)
        self._group: GroupRow | None = None

    def show_group(self, group: GroupRow | None) -> None:
        self.setVisible(group is not None)
        if group is None or group == self._group:
            return
        self._group = group
        self._title.say(family_title(group.family))
        self._who.look("chip" if group.peer is None else "chip-peer")
        self._who.say(author_name(group))
        family, when = FAMILIES.get(group.family), words.moment(group.at, time.time())
        known = family is not None and group.level >= 0
        level = tr("Level {n} of {all}", n=group.level + 1, all=len(family.levels)) if known and family else ""
        self._level.say("  ·  ".join(filter(None, (level, tr("round {n}", n=group.round), when))))
        self._question.tell(breakable(question(group)))
        right = next((split_completion(text)[1] for text, solved, _ in distinct_answers(group) if solved), "")
        said = verdict(group)
        self._verdict.say(
            tr("{verdict}. The answer is {answer}.", verdict=said, answer=right) if right else said
        )
        self._counts.tell(weight_sentence(group))
        self._counts.setToolTip(advantage_sentence(group))
        answers = distinct_answers(group)
        while len(self._rows) < len(answers):
            made = AnswerRow(self._theme)
            self._rows.append(made)
            self._answers.addWidget(made)
        for at, line in enumerate(self._rows):
            line.setVisible(at < len(answers))
            if at < len(answers):
                line.say(*answers[at])


class AnswerRow(Card):
    """One answer, with its working in grey, how often it was given, and its verdict as a sign and in words."""

    def __init__(self, theme: Theme) -> None:
        super().__init__("quiet")
        self._theme = theme
        self._sign, self._text = Label(""), Label("", "soft", wrap=True)
        self._answer, self._times = Label("", "chip"), Label("", "faint")
        for label in (self._text, self._answer):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._text.setStyleSheet(f'font-family: "{mono(BODY).family()}"; font-size: {BODY}px;')
        self._sign.setFixedWidth(20)
        inside = row(self._sign, self._text, self._answer, self._times, gap=8, margins=(12, 8, 12, 8), fill=1)
        for part in (self._sign, self._answer, self._times):
            inside.setAlignment(part, Qt.AlignmentFlag.AlignTop)
        self.setLayout(inside)
        self._solved = False
        theme.changed.connect(self._draw)

    def say(self, text: str, solved: bool, times: int = 1) -> None:
        self._solved = solved
        working, answer = split_completion(text)
        self._text.say(breakable(safe_text(working)) or ("" if answer else tr("(empty)")))
        self._answer.look("chip" if solved else "chip-peer")
        self._answer.tell(safe_line(answer))
        self._times.tell(f"× {times}" if times > 1 else "")
        self._sign.setAccessibleName(tr("right") if solved else tr("wrong"))
        said = " ".join(filter(None, (self._text.text(), self._answer.text(), self._times.text())))
        self.setAccessibleName(f"{self._sign.accessibleName()}: {said}")
        self._draw()

    def _draw(self) -> None:
        colours, icon = self._theme.palette, "check" if self._solved else "cross"
        self._sign.setPixmap(drawn(icon, colours.good if self._solved else colours.text_faint, 16, 16))


def _place(group: GroupRow, among: Sequence[GroupRow]) -> int:
    """Returns the group's current row, 0 if it is gone."""
    known = (group.round, group.coordinates, group.peer)
    found = (at for at, one in enumerate(among) if (one.round, one.coordinates, one.peer) == known)
    return next(found, 0)
