"""A group of answers as text and as a card, and the list that shows the newest of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.common.text import safe_line, safe_text
from app.node.record.records import GroupRow
from app.sapo.advantages import mean_centred
from app.sapo.families import FAMILIES
from app.sapo.questions import QUESTIONS_VERSION, Coordinates
from app.ui.language.texts import counted, number, tr
from app.ui.theme.theme import BODY, mono
from app.ui.view import words
from app.ui.widgets.exchange import breakable
from app.ui.widgets.pieces import Card, Label, button, column, row


def with_question(texts: Mapping[Coordinates, str], group: GroupRow) -> GroupRow:
    """Returns the group with its question's text, if `texts` has it."""
    if group.question is not None or group.coordinates not in texts:
        return group
    return msgspec.structs.replace(group, question=texts[group.coordinates])


def distinct_answers(group: GroupRow) -> list[tuple[str, bool, int]]:
    """Returns (text, right, count) of every different completion, in order of first occurrence."""
    counts = Counter(zip(group.completions_G, map(bool, group.rewards_G), strict=True))
    return [(text, right, times) for (text, right), times in counts.items()]


def question(group: GroupRow) -> str:
    """Returns the question's text, "" while it is not known, or a sentence if it belongs to another version and
    cannot be generated here."""
    if group.question is None and group.coordinates.version != QUESTIONS_VERSION:
        return tr("A puzzle of another version of Shoal: its text cannot be made again.")
    return group.question or ""


def gist(group: GroupRow) -> str:
    """Returns the question on one line."""
    return safe_line(question(group))


def verdict(group: GroupRow) -> str:
    right, n = sum(group.rewards_G), len(group.rewards_G)
    return counted("{right} of {n} answer right", "{right} of {n} answers right", n, right=right)


def claim(group: GroupRow) -> str:
    """Returns the verdict; that of a peer as its own claim, because this computer checks it before learning."""
    said = verdict(group)
    return said if group.peer is None else tr("{verdict}, it says", verdict=said)


def weight_sentence(group: GroupRow) -> str:
    """Returns a sentence that compares how much a right and a wrong answer count, by their advantages in the
    default recipe; empty for peers' groups, whose weights depend on more."""
    if group.peer is not None:
        return ""
    if len(set(group.rewards_G)) < 2:
        return tr("All the same, so there is nothing to tell apart: it teaches nothing.")
    right, wrong = _advantages(group)
    times = max(right, wrong) / min(right, wrong)
    n = number(times, 0 if times == round(times) else 1)
    if right > wrong:
        return tr("Fewer were right, so each counts {n} times as much as a wrong one.", n=n)
    if right < wrong:
        return tr("Fewer were wrong, so each counts {n} times as much as a right one.", n=n)
    return tr("Half were right, so right and wrong answers count the same.")


def _advantages(group: GroupRow) -> tuple[float, float]:
    """The advantage of a right answer and the negative one of a wrong answer; the group must have both."""
    by_reward = dict(zip(group.rewards_G, mean_centred(group.rewards_G), strict=True))
    return by_reward[1], -by_reward[0]


def author_name(group: GroupRow) -> str:
    return tr("this computer") if group.peer is None else group.peer


def family_title(name: str) -> str:
    return tr(FAMILIES[name].title) if name in FAMILIES else name


_ANSWERS = 16
"""Maximum different answers of a group that are shown."""


class GroupCard(Card):
    """A question and all its answers, each with its verdict as a sign."""

    def __init__(self) -> None:
        super().__init__("quiet")
        self._title, self._who = Label("", "strong"), Label("", "chip")
        self._about = Label("", "faint", wrap=True)
        self._question, self._verdict = Label("", wrap=True), Label("", "caption", wrap=True)
        self._answers = Label("", wrap=True)
        self._answers.setStyleSheet(f'font-family: "{mono(BODY).family()}"; font-size: {BODY}px;')
        for one in (self._question, self._answers):
            one.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        head = row(self._title, self._who, 1, gap=10)
        parts = (head, self._about, self._question, self._verdict, self._answers)
        self.setLayout(column(*parts, gap=8, margins=(18, 14, 18, 14)))
        self.group: GroupRow | None = None

    def show_group(self, group: GroupRow, claimed: bool = False) -> None:
        """Shows a group. `claimed`: the verdict is its author's, because it was not checked here."""
        if group == self.group:
            return
        self.group = group
        self._title.say(family_title(group.family))
        self._who.look("chip" if group.peer is None else "chip-peer")
        self._who.say(author_name(group))
        family, told = FAMILIES.get(group.family), [words.moment(group.at, time.time())]
        if group.round:
            told.insert(0, tr("round {n}", n=group.round))
        if family is not None and group.level >= 0:
            told.insert(0, tr("Level {n} of {all}", n=group.level + 1, all=len(family.levels)))
        self._about.say("  ·  ".join(told))
        self._question.tell(breakable(safe_text(question(group))))
        said = claim(group) if claimed else f"{verdict(group)}. {weight_sentence(group)}".strip()
        self._verdict.say(said)
        answers = distinct_answers(group)[:_ANSWERS]
        self._answers.say("\n".join(_line(*one) for one in answers))
        self.setAccessibleName(", ".join((family_title(group.family), gist(group), said, author_name(group))))


def _line(text: str, right: bool, times: int) -> str:
    """Returns an answer on one line: its verdict as a sign, its text, and how often it was given."""
    often = f"  × {times}" if times > 1 else ""
    return f"{'✓' if right else '✗'}  {breakable(safe_line(safe_text(text))) or tr('(empty)')}{often}"


class Feed(QWidget):
    """The newest items of a list, a row each, which stay as they are while somebody reads them."""

    def __init__(self, make: Callable[[], QWidget], most: int) -> None:
        super().__init__()
        self._make, self._most = make, most
        self.rows: list[Any] = []
        self._kept: Sequence[Any] = ()
        self.newer = button(tr("Show newer ones"), lambda: None, "flat")
        self.newer.hide()
        self._column = column(gap=8)
        self.setLayout(self._column)

    def steady(self, items: Sequence[Any], reads: bool) -> Sequence[Any]:
        """Returns the items to show: while somebody `reads`, those that were shown before."""
        shown = self._kept if reads and self._kept else items
        self.newer.setVisible(shown is not items and shown != items)
        self._kept = shown
        return shown

    def release(self) -> None:
        """Lets newer items in."""
        self._kept = ()

    def place(self, items: Sequence[Any]) -> Sequence[tuple[Any, Any]]:
        """Returns (row, item) of the first items, with a row for each."""
        shown = items[: self._most]
        while len(self.rows) < len(shown):
            self.rows.append(self._make())
            self._column.addWidget(self.rows[-1])
        for at, one in enumerate(self.rows):
            one.setVisible(at < len(shown))
        return list(zip(self.rows, shown, strict=False))
