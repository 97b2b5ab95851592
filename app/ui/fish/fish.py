"""The model's fish: what it looks like, from what the model can do, and how it is painted.

Nothing makes it shrink but a model that can do less; nothing makes it grow but one that can do more."""

from __future__ import annotations

import math

import msgspec
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QBrush, QColor, QLinearGradient, QPainter, QPainterPath, QPen, QPolygonF

from app.ui.language.texts import counted, number, tr
from app.ui.theme import Theme
from app.ui.view.view import View

MOST_STRIPES = 6
_FRY = 0.42
"""Length of the fish of a model that solves nothing, as a share of the longest."""
_FINS = (1, 3, 6, 10)
"""Levels climbed for each further fin."""
_MOSTLY = 0.5


class Fish(msgspec.Struct, frozen=True, kw_only=True):
    """`length` is a share of the longest; `fins` are those on its back, `stripes` those on its side."""

    length: float = _FRY
    fins: int = 0
    stripes: int = 0


def grown(solved: float | None, climbed: int, mastered: int) -> Fish:
    """The fish of a model that solves this share of new puzzles, has climbed `levels` levels in all, and solves
    at least half of the new puzzles of `mastered` families. The length shows the share, the fins the levels,
    the stripes the families.

    >>> grown(None, 0, 0)
    Fish(length=0.42, fins=0, stripes=0)
    >>> grown(0.5, climbed=4, mastered=3)
    Fish(length=0.71, fins=2, stripes=3)
    >>> grown(1.0, climbed=40, mastered=55)
    Fish(length=1.0, fins=4, stripes=6)
    """
    return Fish(
        length=round(_FRY + (1 - _FRY) * min(1.0, max(0.0, solved or 0.0)), 3),
        fins=sum(climbed >= least for least in _FINS),
        stripes=min(MOST_STRIPES, mastered),
    )


def now(view: View) -> Fish:
    """The fish of the model as it is now."""
    return grown(view.curve[-1].share if view.curve else None, climbed(view), len(mastered(view)))


def climbed(view: View) -> int:
    """Levels reached beyond those at which its families began."""
    return sum(milestone.level > 0 for family in view.families for milestone in family.milestones)


def mastered(view: View) -> list[str]:
    """Titles of the families of which it solves at least half, the best first."""
    found = [family for family in view.families if family.latest is not None and family.latest >= _MOSTLY]
    return [family.title for family in sorted(found, key=lambda one: -(one.latest or 0.0))]


def told(view: View) -> str:
    """The fish described in words."""
    share, levels, titles = view.curve[-1].share if view.curve else None, climbed(view), mastered(view)
    if share is None:
        return tr("A small fish. It grows once your model has been measured.")
    said = tr("It is as long as your model is good: {n} of 100 new puzzles.", n=number(100 * share))
    if titles:
        said += " " + tr("Stripes, for what it mostly solves: {families}.", families=", ".join(titles[:6]))
    if levels:
        said += " " + counted("Fins: {n} level climbed.", "Fins: {n} levels climbed.", levels)
    return said


_ALONG = tuple((at / 27) ** 1.7 for at in range(28))
"""Positions along the body, from nose (0) to the root of the tail (1), denser where it is round."""
_THICK = 0.2
"""Half of the body's height, as a share of its length."""
_STROKES = 2 * math.pi


def paint(
    painter: QPainter, theme: Theme, fish: Fish, nose: QPointF, length: float, phase: float = 0.0
) -> None:
    """Paints it with its nose at this point, `length` pixels long, looking right. `phase` is the tail's
    position in its stroke, in turns: 0 is a fish at rest."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate(nose)
    painter.scale(length, length)
    body = theme.colour("own")
    spine = [_bent(along, phase) for along in _ALONG]
    _fins(painter, fish, body, phase)
    outline = _outline(spine)
    shade = QLinearGradient(0, -_THICK, 0, _THICK)
    shade.setColorAt(0.0, body.darker(112))
    shade.setColorAt(0.55, body)
    shade.setColorAt(1.0, body.lighter(135))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QBrush(shade))
    painter.drawPath(outline)
    painter.setClipPath(outline)
    _stripes(painter, theme, fish.stripes, phase)
    painter.setClipping(False)
    eye = _bent(0.14, phase) + QPointF(0, -0.04)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(Qt.GlobalColor.white)
    painter.drawEllipse(eye, 0.034, 0.034)
    painter.setBrush(QColor("#0f2429"))
    painter.drawEllipse(eye + QPointF(0.006, 0), 0.018, 0.018)
    painter.restore()


def _bent(along: float, phase: float) -> QPointF:
    """A point of the spine, from nose (0) to the root of the tail (1): the wave grows towards the tail."""
    wave = math.sin(_STROKES * (phase - 0.55 * along)) * 0.055 * along**1.6 if phase else 0.0
    return QPointF(-0.8 * along, wave)


def _half(along: float) -> float:
    """Half of the body's height at this position: a drop, thickest in front of its middle."""
    return _THICK * math.sin(math.pi * along**0.66) ** 0.9 + 0.03 * along**3


def _outline(spine: list[QPointF]) -> QPainterPath:
    above = [point - QPointF(0, _half(along)) for along, point in zip(_ALONG, spine, strict=True)]
    below = [point + QPointF(0, _half(along)) for along, point in zip(_ALONG, spine, strict=True)]
    path = QPainterPath()
    path.addPolygon(QPolygonF([*above, *reversed(below), above[0]]))
    path.closeSubpath()
    return path


def _fins(painter: QPainter, fish: Fish, body: QColor, phase: float) -> None:
    """Tail, belly, and the fins on its back; behind the body, and lighter."""
    fin = QColor(body)
    fin.setAlphaF(0.72)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(fin)
    root = _bent(1.0, phase)
    swing = (root.y() - _bent(0.86, phase).y()) * 2.4
    spread = 0.12 + 0.05 * fish.length
    tail = QPainterPath(root + QPointF(0.06, -0.025))
    tail.quadTo(root + QPointF(-0.06, -0.03), root + QPointF(-0.2, swing - spread))
    tail.quadTo(root + QPointF(-0.1, swing), root + QPointF(-0.2, swing + spread))
    tail.quadTo(root + QPointF(-0.06, 0.03), root + QPointF(0.06, 0.025))
    painter.drawPath(tail)
    belly, flap = _bent(0.4, phase), 0.02 * math.sin(_STROKES * phase)
    under = QPainterPath(belly + QPointF(0.05, 0.12))
    under.quadTo(belly + QPointF(-0.03, 0.26 + flap), belly + QPointF(-0.14, 0.27 + flap))
    under.quadTo(belly + QPointF(-0.1, 0.18), belly + QPointF(-0.09, 0.11))
    painter.drawPath(under)
    for at in range(fish.fins):
        along = 0.3 + 0.4 * at / max(3, fish.fins)
        top = _bent(along, phase) - QPointF(0, _half(along) - 0.03)
        high = 0.15 - 0.018 * at
        back = QPainterPath(top + QPointF(0.06, 0.01))
        back.quadTo(top + QPointF(0.0, -high), top + QPointF(-0.13, -high * 0.95))
        back.quadTo(top + QPointF(-0.07, -0.04), top + QPointF(-0.07, 0.02))
        painter.drawPath(back)


def _stripes(painter: QPainter, theme: Theme, stripes: int, phase: float) -> None:
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(theme.colour("surface", 0.5), 0.026, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
    for at in range(stripes):
        along = 0.34 + 0.5 * at / max(4, stripes)
        half, middle = _half(along), _bent(along, phase)
        stripe = QPainterPath(middle - QPointF(-0.01, half))
        stripe.quadTo(middle - QPointF(0.035, 0), middle + QPointF(0.01, half))
        painter.drawPath(stripe)
