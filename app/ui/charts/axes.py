"""The axes around a curve with their numbers, and the label at the pointer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from app.ui.language.texts import percent, tr
from app.ui.theme import Theme
from app.ui.theme.palette import SMALL
from app.ui.theme.theme import font

# Where an axis has its marks. Pure.


def linear(low: float, high: float, about: int) -> list[float]:
    """Round numbers between low and high, about `count` of them.

    >>> linear(0, 160, 5), linear(0, 0.52, 4)
    ([0, 50, 100, 150], [0.0, 0.2, 0.4])
    """
    if not high > low:
        return [low]
    raw = (high - low) / max(1, about)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    marks = [round(n * step, 10) for n in range(first, last + 1)]
    return [int(mark) for mark in marks] if step >= 1 and step == int(step) else marks


def whole(low: float, high: float, about: int) -> list[float]:
    """Like `linear`, but whole numbers only: no 2.5.

    >>> whole(0, 3, 6)
    [0, 1, 2, 3]
    """
    return list(dict.fromkeys(int(mark) for mark in linear(low, high, about) if mark == int(mark)))


def logarithmic(low: float, high: float) -> list[float]:
    """1, 2, 5 times powers of ten between low and high (low at least 1); only the powers if there are many.

    >>> logarithmic(1, 60), logarithmic(1, 200_000)
    ([1, 2, 5, 10, 20, 50], [1, 10, 100, 1000, 10000, 100000])
    """
    powers = range(math.floor(math.log10(max(1.0, low))), math.ceil(math.log10(max(1.0, high))) + 1)
    factors = (1, 2, 5) if len(powers) <= 4 else (1,)
    return [mark for power in powers for factor in factors if low <= (mark := factor * 10**power) <= high]


def top(value: float) -> float:
    """The upper end of an axis of shares that holds this value, at least 0.1, at most 1.

    >>> top(0.03), top(0.335), top(0.97)
    (0.1, 0.4, 1.0)
    """
    return next((step for step in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8) if value <= step * 0.98), 1.0)


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
