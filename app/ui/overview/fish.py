"""The model's fish on the overview: a still drawing as long as the share of new puzzles that the model solves,
with a stripe for each kind that it mostly solves."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QKeyEvent,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.ui.language.texts import number, tr
from app.ui.theme import Theme
from app.ui.view import words
from app.ui.view.view import View
from app.ui.widgets.pieces import antialiased_painter

MAX_STRIPES = 6
_FRY = 0.42
"""Length of the fish of a model that solves nothing, as a share of the longest."""
_MOSTLY = 0.5


class FishShape(msgspec.Struct, frozen=True, kw_only=True):
    """A fish's shape: `length` is a share of the longest, `stripes` are on its side."""

    length: float = _FRY
    stripes: int = 0


def make_fish(solved: float | None, mastered: int) -> FishShape:
    """Returns the fish of a model that solves the share `solved` of new puzzles, and at least half of those of
    `mastered` families.

    >>> make_fish(None, 0), make_fish(0.5, mastered=3)
    (FishShape(length=0.42, stripes=0), FishShape(length=0.71, stripes=3))
    >>> make_fish(1.0, mastered=55)
    FishShape(length=1.0, stripes=6)
    """
    length = round(_FRY + (1 - _FRY) * min(1.0, max(0.0, solved or 0.0)), 3)
    return FishShape(length=length, stripes=min(MAX_STRIPES, mastered))


def mastered(view: View) -> list[str]:
    """Returns the titles of the families of which the model solves at least half, best first."""
    found = [family for family in view.families if family.latest is not None and family.latest >= _MOSTLY]
    return [family.title for family in sorted(found, key=lambda one: -(one.latest or 0.0))]


def describe(view: View) -> str:
    if not view.curve:
        return tr("A small fish. It grows once your model has been measured.")
    share, titles = number(100 * view.curve[-1].share), mastered(view)
    if view.skill:
        return tr("It is as long as your model is good: {n} of 100 rows kept aside.", n=share)
    said = tr("It is as long as your model is good: {n} of 100 new puzzles.", n=share)
    if titles:
        said += " " + tr("Stripes, for what it mostly solves: {families}.", families=", ".join(titles[:6]))
    return said


_ALONG = tuple((at / 27) ** 1.7 for at in range(28))
"""Positions along the body, from nose (0) to the root of the tail (1), denser where it is round."""
_THICK = 0.2
"""Half of the body's height, as a share of its length."""
_FINS = (0.3, 0.43)
"""Positions of the fins on its back."""


def paint(painter: QPainter, theme: Theme, fish: FishShape, nose: QPointF, length: float) -> None:
    """Paints the fish looking right, `length` pixels long, with its nose at `nose`."""
    painter.save()
    painter.translate(nose)
    painter.scale(length, length)
    body = theme.colour("own")
    painter.setPen(Qt.PenStyle.NoPen)
    _paint_fins(painter, fish, body)
    outline = _outline()
    shade = QLinearGradient(0, -_THICK, 0, _THICK)
    shade.setColorAt(0.0, body.darker(112))
    shade.setColorAt(0.55, body)
    shade.setColorAt(1.0, body.lighter(135))
    painter.setBrush(QBrush(shade))
    painter.drawPath(outline)
    painter.setClipPath(outline)
    _paint_stripes(painter, theme, fish.stripes)
    painter.setClipping(False)
    eye = _spine(0.14) + QPointF(0, -0.04)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(Qt.GlobalColor.white)
    painter.drawEllipse(eye, 0.034, 0.034)
    painter.setBrush(QColor("#0f2429"))
    painter.drawEllipse(eye + QPointF(0.006, 0), 0.018, 0.018)
    painter.restore()


def _spine(along: float) -> QPointF:
    """A point of the spine, from nose (0) to the root of the tail (1)."""
    return QPointF(-0.8 * along, 0)


def _half(along: float) -> float:
    """Returns half of the body's height at this position, thickest in front of the middle."""
    return _THICK * math.sin(math.pi * along**0.66) ** 0.9 + 0.03 * along**3


def _outline() -> QPainterPath:
    above = [_spine(along) - QPointF(0, _half(along)) for along in _ALONG]
    below = [_spine(along) + QPointF(0, _half(along)) for along in _ALONG]
    path = QPainterPath()
    path.addPolygon(QPolygonF([*above, *reversed(below), above[0]]))
    path.closeSubpath()
    return path


def _paint_fins(painter: QPainter, fish: FishShape, body: QColor) -> None:
    """Paints tail, belly and back fins, behind the body and lighter."""
    fin = QColor(body)
    fin.setAlphaF(0.72)
    painter.setBrush(fin)
    root, spread = _spine(1.0), 0.12 + 0.05 * fish.length
    tail = QPainterPath(root + QPointF(0.06, -0.025))
    tail.quadTo(root + QPointF(-0.06, -0.03), root + QPointF(-0.2, -spread))
    tail.quadTo(root + QPointF(-0.1, 0), root + QPointF(-0.2, spread))
    tail.quadTo(root + QPointF(-0.06, 0.03), root + QPointF(0.06, 0.025))
    painter.drawPath(tail)
    belly = _spine(0.4)
    under = QPainterPath(belly + QPointF(0.05, 0.12))
    under.quadTo(belly + QPointF(-0.03, 0.26), belly + QPointF(-0.14, 0.27))
    under.quadTo(belly + QPointF(-0.1, 0.18), belly + QPointF(-0.09, 0.11))
    painter.drawPath(under)
    for at, along in enumerate(_FINS):
        top, high = _spine(along) - QPointF(0, _half(along) - 0.03), 0.15 - 0.018 * at
        back = QPainterPath(top + QPointF(0.06, 0.01))
        back.quadTo(top + QPointF(0.0, -high), top + QPointF(-0.13, -high * 0.95))
        back.quadTo(top + QPointF(-0.07, -0.04), top + QPointF(-0.07, 0.02))
        painter.drawPath(back)


def _paint_stripes(painter: QPainter, theme: Theme, stripes: int) -> None:
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(theme.colour("surface", 0.5), 0.026, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
    for at in range(stripes):
        along = 0.34 + 0.5 * at / max(4, stripes)
        half, middle = _half(along), _spine(along)
        stripe = QPainterPath(middle - QPointF(-0.01, half))
        stripe.quadTo(middle - QPointF(0.035, 0), middle + QPointF(0.01, half))
        painter.drawPath(stripe)


_WIDE, _HIGH, _LONGEST = 172, 62, 92
"""Pixels of the water, and of the longest fish."""


class Fish(QWidget):
    """The fish in its water. `press` is called by a click, Space or Enter."""

    def __init__(self, theme: Theme, press: Callable[[], object]) -> None:
        super().__init__()
        self._theme, self._press = theme, press
        self._shape = FishShape()
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(_WIDE, _HIGH)

    def show_view(self, view: View) -> None:
        name, said = words.model_name(view), describe(view)
        self.setToolTip(said)
        self.setAccessibleName(tr("The fish of {name}", name=name) if name else tr("Your model's fish"))
        self.setAccessibleDescription(said)
        shape = make_fish(view.curve[-1].share if view.curve else None, len(mastered(view)))
        if shape != self._shape:
            self._shape = shape
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = antialiased_painter(self)
        room = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        accent = self._theme.colour("accent")
        painter.setPen(QPen(accent, 1.5) if self.hasFocus() else Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour("accent_soft", 0.6))
        painter.drawRoundedRect(room, 14, 14)
        length = _LONGEST * self._shape.length
        paint(painter, self._theme, self._shape, room.center() + QPointF(length / 2, 0), length)
        painter.end()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._press()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._press()
        else:
            super().keyPressEvent(event)
