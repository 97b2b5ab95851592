"""The list of groups, and how a line of it is drawn."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import (
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.node.record.records import GroupRow
from app.ui.language.texts import tr
from app.ui.privacy.group_texts import family_title, gist, verdict, who
from app.ui.theme import Theme
from app.ui.theme.palette import BODY, SMALL
from app.ui.theme.theme import font

_ROW = 84


_Index = QModelIndex | QPersistentModelIndex


_ROOT = QModelIndex()


class Groups(QAbstractListModel):
    """Groups, newest first."""

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
            return ", ".join((family_title(group.family), gist(group), verdict(group), who(group)))
        return None


class GroupPainter(QStyledItemDelegate):
    """A question in three lines: what it is, its gist, and a dot for every answer."""

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
        if state & QStyle.StateFlag.State_Selected:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.colour("accent_soft"))
            painter.drawRoundedRect(area, 9, 9)
        elif state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.colour("sunken"))
            painter.drawRoundedRect(area, 9, 9)
        if state & QStyle.StateFlag.State_HasFocus and option.widget.hasFocus():
            painter.setPen(QPen(theme.colour("accent"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(area, 9, 9)
        inner = area.adjusted(12, 9, -12, -9)
        self._line(
            painter,
            inner,
            0,
            family_title(group.family),
            "text",
            font(BODY, font(BODY).Weight.DemiBold),
            who(group),
        )
        self._line(painter, inner, 22, gist(group), "text_soft", font(BODY), "")
        self._dots(painter, inner, group)
        painter.restore()

    def _line(
        self, painter: QPainter, area: QRectF, down: int, text: str, colour: str, style: object, right: str
    ) -> None:
        used = 0.0
        if right:
            painter.setFont(font(SMALL))
            metrics = QFontMetricsF(painter.font())
            right = metrics.elidedText(right, Qt.TextElideMode.ElideRight, area.width() / 2)
            used = metrics.horizontalAdvance(right) + 10
            painter.setPen(self._theme.colour("text_faint"))
            painter.drawText(
                QRectF(area.left(), area.top() + down, area.width(), 18),
                int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter),
                right,
            )
        painter.setFont(style)  # type: ignore[arg-type]
        painter.setPen(self._theme.colour(colour))
        fitted = QFontMetricsF(painter.font()).elidedText(
            text, Qt.TextElideMode.ElideRight, area.width() - used
        )
        painter.drawText(
            QRectF(area.left(), area.top() + down, area.width(), 18), int(Qt.AlignmentFlag.AlignVCenter), fitted
        )

    def _dots(self, painter: QPainter, area: QRectF, group: GroupRow) -> None:
        theme, y = self._theme, area.bottom() - 7
        for at, solved in enumerate(group.rewards_G[:24]):
            painter.setPen(QPen(theme.colour("good" if solved else "text_faint"), 1.4))
            painter.setBrush(theme.colour("good") if solved else Qt.BrushStyle.NoBrush)
            painter.drawEllipse(QRectF(area.left() + 13 * at, y - 4, 8, 8))
        painter.setFont(font(SMALL))
        painter.setPen(theme.colour("text_faint"))
        text = tr("round {n}", n=group.round)
        painter.drawText(
            QRectF(area.left(), y - 9, area.width(), 18),
            int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter),
            text,
        )
