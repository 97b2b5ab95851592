"""Texts about a group of answers, the list of groups, and how a row of it is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.common.text import safe_line
from app.node.record.records import GroupRow
from app.sapo.advantages import mean_centred
from app.sapo.asking import OPEN_TAG, SHORT_MARK, extract_answer
from app.sapo.families import FAMILIES
from app.sapo.questions import QUESTIONS_VERSION, Coordinates
from app.ui.language.texts import counted, number, tr
from app.ui.theme import Theme
from app.ui.theme.theme import BODY, SMALL, font

_LONGEST_ANSWER = 24
"""Maximum characters of an answer shown beside its working."""


def with_question(texts: Mapping[Coordinates, str], group: GroupRow) -> GroupRow:
    """Returns the group with its question's text, if `texts` has it."""
    if group.question is not None or group.coordinates not in texts:
        return group
    return msgspec.structs.replace(group, question=texts[group.coordinates])


def split_completion(text: str) -> tuple[str, str]:
    """Splits a completion into working and answer. One without an answer, or with a long one, is all working.

    >>> [split_completion(text) for text in ("7-3=4 4+9=13 #13", "no idea", "<answer>5</answer>")]
    [('7-3=4 4+9=13', '13'), ('no idea', ''), ('', '5')]
    """
    answer = extract_answer(text)
    if answer is None or len(answer) > _LONGEST_ANSWER:
        return text, ""
    end = max(text.rfind(SHORT_MARK), text.rfind(OPEN_TAG))
    return text[: end if end >= 0 else len(text)].strip(), answer


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


def advantage_sentence(group: GroupRow) -> str:
    """Returns a sentence with the advantages as numbers; empty for peers' groups and if all rewards are
    equal."""
    if group.peer is not None or len(set(group.rewards_G)) < 2:
        return ""
    right, wrong = (number(value, 3) for value in _advantages(group))
    return tr(
        "Advantage: +{up} for a right answer, −{down} for a wrong one. That is the reward, 1 or 0, less the "
        "average of all answers.",
        up=right,
        down=wrong,
    )


def _advantages(group: GroupRow) -> tuple[float, float]:
    """The advantage of a right answer and the negative one of a wrong answer; the group must have both."""
    by_reward = dict(zip(group.rewards_G, mean_centred(group.rewards_G), strict=True))
    return by_reward[1], -by_reward[0]


def author_name(group: GroupRow) -> str:
    return tr("this computer") if group.peer is None else group.peer


def family_title(name: str) -> str:
    return tr(FAMILIES[name].title) if name in FAMILIES else name


_ROW = 84
_Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


class Groups(QAbstractListModel):
    """The list of groups, newest first."""

    def __init__(self) -> None:
        super().__init__()
        self._groups: Sequence[GroupRow] = ()

    def show_groups(self, groups: Sequence[GroupRow]) -> None:
        self.beginResetModel()
        self._groups = groups
        self.endResetModel()

    def group(self, at: _Index) -> GroupRow:
        return self._groups[at.row()]

    def rowCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self._groups)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        group = self._groups[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return ", ".join((family_title(group.family), gist(group), verdict(group), author_name(group)))
        return None


class GroupPainter(QStyledItemDelegate):
    """Draws a group in three lines: kind, gist of the question, and a dot for every answer."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        theme.changed.connect(parent.update)

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        return QSize(280, _ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        model = index.model()
        assert isinstance(model, Groups)
        group, theme = model.group(index), self._theme
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(option.rect).adjusted(2, 2, -2, -2)
        state = option.state
        chosen = state & QStyle.StateFlag.State_Selected
        if chosen or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.colour("accent_soft" if chosen else "sunken"))
            painter.drawRoundedRect(area, 9, 9)
        if state & QStyle.StateFlag.State_HasFocus and option.widget.hasFocus():
            painter.setPen(QPen(theme.colour("accent"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(area, 9, 9)
        inner = area.adjusted(12, 9, -12, -9)
        used = self._right(painter, inner, 0, author_name(group)) + 10
        title, bold = family_title(group.family), font(BODY, QFont.Weight.DemiBold)
        self._left(painter, inner.adjusted(0, 0, -used, 0), title, "text", bold)
        self._left(painter, inner.adjusted(0, 22, 0, 0), gist(group), "text_soft", font(BODY))
        self._dots(painter, inner, group)
        painter.restore()

    def _left(self, painter: QPainter, area: QRectF, text: str, colour: str, style: QFont) -> None:
        """Draws a line at the top of the area, cut to its width."""
        painter.setFont(style)
        painter.setPen(self._theme.colour(colour))
        fitted = QFontMetricsF(style).elidedText(text, Qt.TextElideMode.ElideRight, area.width())
        line = QRectF(area.left(), area.top(), area.width(), 18)
        painter.drawText(line, int(Qt.AlignmentFlag.AlignVCenter), fitted)

    def _right(self, painter: QPainter, area: QRectF, down: float, text: str) -> float:
        """Draws a faint line at the right end of the area, at most half as wide; returns its width."""
        painter.setFont(font(SMALL))
        painter.setPen(self._theme.colour("text_faint"))
        metrics = QFontMetricsF(painter.font())
        fitted = metrics.elidedText(text, Qt.TextElideMode.ElideRight, area.width() / 2)
        line = QRectF(area.left(), area.top() + down, area.width(), 18)
        painter.drawText(line, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), fitted)
        return metrics.horizontalAdvance(fitted)

    def _dots(self, painter: QPainter, area: QRectF, group: GroupRow) -> None:
        theme, y = self._theme, area.bottom() - 7
        for at, solved in enumerate(group.rewards_G[:24]):
            painter.setPen(QPen(theme.colour("good" if solved else "text_faint"), 1.4))
            painter.setBrush(theme.colour("good") if solved else Qt.BrushStyle.NoBrush)
            painter.drawEllipse(QRectF(area.left() + 13 * at, y - 4, 8, 8))
        self._right(painter, area, area.height() - 16, tr("round {n}", n=group.round))
