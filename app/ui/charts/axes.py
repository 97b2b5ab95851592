"""The axes around a curve with their numbers, and the label at the pointer."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from app.common.drawing import linear
from app.ui.language.texts import percent, tr
from app.ui.theme import Theme
from app.ui.theme.palette import SMALL
from app.ui.theme.theme import font


def heights(painter: QPainter, theme: Theme, plot: QRectF, top: float) -> None:
    """Lines from 0 to `top`, a share, with percents beside them."""
    metrics = QFontMetricsF(painter.font())
    for mark in linear(0, top, min(10, max(2, round(plot.height() / 64)))):
        y = plot.bottom() - mark / top * plot.height()
        painter.setPen(QPen(theme.colour("grid" if mark else "line_strong"), 1))
        painter.drawLine(QPointF(plot.left(), round(y) + 0.5), QPointF(plot.right(), round(y) + 0.5))
        painter.setPen(theme.colour("text_faint"))
        text = percent(mark, 0 if abs(100 * mark - round(100 * mark)) < 1e-6 else 1)
        painter.drawText(QPointF(plot.left() - metrics.horizontalAdvance(text) - 8, y + 4), text)


def rounds(
    painter: QPainter, theme: Theme, plot: QRectF, right: float, places: Sequence[tuple[float, str]]
) -> None:
    """Numbers of rounds at their `places`, as far as they leave room for the axis title, which ends at
    `right`."""
    metrics = QFontMetricsF(painter.font())
    painter.setPen(theme.colour("text_faint"))
    name = tr("rounds")
    begins = right - metrics.horizontalAdvance(name)
    for x, text in places:
        half = metrics.horizontalAdvance(text) / 2
        if x + half < begins - 12:
            painter.drawText(QPointF(max(plot.left() - 4, x - half), plot.bottom() + 20), text)
    painter.drawText(QPointF(begins, plot.bottom() + 20), name)


def label(painter: QPainter, theme: Theme, plot: QRectF, at: QPointF, texts: Sequence[str]) -> None:
    """Lines in a box beside a point of the curve, on whichever side has room."""
    painter.setFont(font(SMALL))
    metrics = QFontMetricsF(painter.font())
    width = max(metrics.horizontalAdvance(text) for text in texts) + 20
    height = 17 * len(texts) + 11
    box = QRectF(at.x() + 12, max(plot.top(), at.y() - height - 8), width, height)
    if box.right() > plot.right():
        box.moveRight(at.x() - 12)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.colour("text"))
    painter.drawRoundedRect(box, 6, 6)
    painter.setPen(theme.colour("surface"))
    for row, text in enumerate(texts):
        painter.drawText(QPointF(box.left() + 10, box.top() + 19 + 17 * row), text)
