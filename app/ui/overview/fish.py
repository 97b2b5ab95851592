"""The model's fish on the overview: its shape, computed from the model's abilities, how it is painted, and the
pond in which it swims while the model learns.

It shrinks only if the model can do less, and grows only if it can do more. It moves only if neither the setting
nor the system asks for less motion, and not before that is known."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import cache

import msgspec
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import (
    QBrush,
    QColor,
    QHideEvent,
    QKeyEvent,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPixmap,
    QPolygonF,
    QShowEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.desktop import choose
from app.ui.language.texts import counted, number, tr
from app.ui.theme import Theme
from app.ui.view import words
from app.ui.view.settings import Choices
from app.ui.view.view import NodeStatus, View
from app.ui.widgets.pieces import antialiased_painter

MAX_STRIPES = 6
_FRY = 0.42
"""Length of the fish of a model that solves nothing, as a share of the longest."""
_FINS = (1, 3, 6, 10)
"""Levels climbed at which another fin appears."""
_MOSTLY = 0.5


class FishShape(msgspec.Struct, frozen=True, kw_only=True):
    """A fish's shape: `length` is a share of the longest, `fins` are on its back, `stripes` on its side."""

    length: float = _FRY
    fins: int = 0
    stripes: int = 0


def make_fish(solved: float | None, climbed: int, mastered: int) -> FishShape:
    """Returns the fish of a model that solves the share `solved` of new puzzles, has climbed `climbed` levels
    in all, and solves at least half of the new puzzles of `mastered` families. Length, fins and stripes show
    these three.

    >>> make_fish(None, 0, 0)
    FishShape(length=0.42, fins=0, stripes=0)
    >>> make_fish(0.5, climbed=4, mastered=3)
    FishShape(length=0.71, fins=2, stripes=3)
    >>> make_fish(1.0, climbed=40, mastered=55)
    FishShape(length=1.0, fins=4, stripes=6)
    """
    return FishShape(
        length=round(_FRY + (1 - _FRY) * min(1.0, max(0.0, solved or 0.0)), 3),
        fins=sum(climbed >= least for least in _FINS),
        stripes=min(MAX_STRIPES, mastered),
    )


def current_fish(view: View) -> FishShape:
    """Returns the model's current fish."""
    return make_fish(view.curve[-1].share if view.curve else None, climbed(view), len(mastered(view)))


def climbed(view: View) -> int:
    """Returns the number of levels reached beyond those at which the families began."""
    return sum(milestone.level > 0 for family in view.families for milestone in family.milestones)


def mastered(view: View) -> list[str]:
    """Returns the titles of the families of which the model solves at least half, best first."""
    found = [family for family in view.families if family.latest is not None and family.latest >= _MOSTLY]
    return [family.title for family in sorted(found, key=lambda one: -(one.latest or 0.0))]


def describe(view: View) -> str:
    share, levels, titles = view.curve[-1].share if view.curve else None, climbed(view), mastered(view)
    if share is None:
        return tr("A small fish. It grows once your model has been measured.")
    if view.skill:
        return tr("It is as long as your model is good: {n} of 100 rows kept aside.", n=number(100 * share))
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
    painter: QPainter, theme: Theme, fish: FishShape, nose: QPointF, length: float, phase: float = 0.0
) -> None:
    """Paints the fish looking right, `length` pixels long, with its nose at `nose`. `phase` is the position of
    the tail's stroke in turns; 0 is at rest."""
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
    """A point of the spine, from nose (0) to the root of the tail (1); the wave grows towards the tail."""
    wave = math.sin(_STROKES * (phase - 0.55 * along)) * 0.055 * along**1.6 if phase else 0.0
    return QPointF(-0.8 * along, wave)


def _half(along: float) -> float:
    """Returns half of the body's height at this position, thickest in front of the middle."""
    return _THICK * math.sin(math.pi * along**0.66) ** 0.9 + 0.03 * along**3


def _outline(spine: list[QPointF]) -> QPainterPath:
    above = [point - QPointF(0, _half(along)) for along, point in zip(_ALONG, spine, strict=True)]
    below = [point + QPointF(0, _half(along)) for along, point in zip(_ALONG, spine, strict=True)]
    path = QPainterPath()
    path.addPolygon(QPolygonF([*above, *reversed(below), above[0]]))
    path.closeSubpath()
    return path


def _fins(painter: QPainter, fish: FishShape, body: QColor, phase: float) -> None:
    """Paints tail, belly and back fins, behind the body and lighter."""
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


FRAME_MS = 100
"""Milliseconds per frame: enough for a resting fish, and cheap."""


class MotionPreference:
    """Whether the system asks for less motion. `still` is True until a thread has found out."""

    def __init__(self) -> None:
        self.still = True
        threading.Thread(target=self._ask, daemon=True, name="motion").start()

    def _ask(self) -> None:
        self.still = choose.reduced_motion()


@cache
def motion_preference() -> MotionPreference:
    return MotionPreference()


def is_motion_off(choices: Choices) -> bool:
    """Whether the setting or the system turns motion off."""
    return choices["motion"] == "still" or motion_preference().still


_WIDE, _HIGH = 172, 62
_LONGEST, _ROUND = 92, 6
"""Length of the longest fish, and the margin around it, in pixels."""
_LAP = 190
"""Frames from one side of the water to the other and back."""
_STROKE = 11
"""Frames of one stroke of the tail."""


class Pond(QWidget):
    """The water with the fish. `press` is called by a click, Space or Enter. `timer` ticks once per frame while
    the fish swims and is visible."""

    def __init__(self, theme: Theme, choices: Choices, press: Callable[[], object]) -> None:
        super().__init__()
        self._theme, self._choices, self._press = theme, choices, press
        self.timer = QTimer(self, interval=FRAME_MS)
        self._fish, self._swims = FishShape(), False
        self._frame = 0
        self._drawn: dict[int, QPixmap] = {}
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # else all behind it is painted each time
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.timer.timeout.connect(self._step)
        theme.changed.connect(self._repaint)

    def sizeHint(self) -> QSize:
        return QSize(_WIDE, _HIGH)

    def show_view(self, view: View) -> None:
        fish, swims = current_fish(view), view.state is NodeStatus.LEARNING
        name = words.model_name(view)
        said = describe(view)
        self.setToolTip(said)
        self.setAccessibleName(tr("The fish of {name}", name=name) if name else tr("Your model's fish"))
        self.setAccessibleDescription(said)
        if (fish, swims) != (self._fish, self._swims):
            self._fish, self._swims = fish, swims
            self._repaint()
        self._keep_time()

    def _keep_time(self) -> None:
        seen = self.isVisible() and not self.window().isMinimized()
        moves = self._swims and seen and not is_motion_off(self._choices)
        if moves != self.timer.isActive():
            self.timer.start() if moves else self.timer.stop()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._keep_time()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._keep_time()

    def _repaint(self) -> None:
        self._drawn.clear()
        self.update()

    def _step(self) -> None:
        self._frame += 1
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = antialiased_painter(self)
        theme, room = self._theme, QRectF(self.rect()).adjusted(1, 1, -1, -1)
        painter.fillRect(self.rect(), theme.colour("surface"))
        water = QPainterPath()
        water.addRoundedRect(room, 14, 14)
        painter.setPen(QPen(theme.colour("accent"), 1.5) if self.hasFocus() else Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour("accent_soft", 0.6))
        painter.drawPath(water)
        painter.setClipPath(water)
        self._plants(painter, room)
        moves = self.timer.isActive()
        turn = self._frame % _LAP / _LAP if moves else 0.22
        way = 0.5 - 0.5 * math.cos(2 * math.pi * turn)
        left = turn > 0.5
        length = _LONGEST * self._fish.length
        span = room.width() - length - 20
        tail = room.left() + 10 + span * way
        depth = room.center().y() - 2 + 3.5 * math.sin(2 * math.pi * 2 * turn)
        if moves:
            self._bubbles(painter, room)
        painter.translate(tail + length / 2, depth)
        painter.scale(-1 if left else 1, 1)
        painter.drawPixmap(QPointF(-_LONGEST / 2 - _ROUND, -_HIGH / 2), self._picture(moves))
        painter.end()

    def _picture(self, moves: bool) -> QPixmap:
        """Returns the fish at this moment of its stroke, cached because all strokes are alike."""
        stroke = 1 + self._frame % _STROKE if moves else 0
        if stroke not in self._drawn:
            ratio = self.devicePixelRatioF()
            made = QPixmap(QSize(round((_LONGEST + 2 * _ROUND) * ratio), round(_HIGH * ratio)))
            made.setDevicePixelRatio(ratio)
            made.fill(Qt.GlobalColor.transparent)
            painter = QPainter(made)
            length = _LONGEST * self._fish.length
            nose = QPointF(_ROUND + _LONGEST / 2 + length / 2, _HIGH / 2)
            paint(painter, self._theme, self._fish, nose, length, stroke / _STROKE)
            painter.end()
            self._drawn[stroke] = made
        return self._drawn[stroke]

    def _plants(self, painter: QPainter, room: QRectF) -> None:
        """Paints slowly waving plants on the ground."""
        colour = self._theme.colour("good", 0.42)
        painter.setPen(QPen(colour, 2.4, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        for at, (place, high) in enumerate(((0.07, 20), (0.11, 13), (0.86, 16), (0.9, 25), (0.94, 12))):
            x, ground = room.left() + place * room.width(), room.bottom()
            sway = 2.2 * math.sin(self._frame / 14 + at)
            blade = QPainterPath(QPointF(x, ground))
            blade.quadTo(QPointF(x - 3, ground - high / 2), QPointF(x + sway, ground - high))
            painter.drawPath(blade)

    def _bubbles(self, painter: QPainter, room: QRectF) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour("own", 0.28))
        for at in range(3):
            rise = (self._frame / 46 + at / 3) % 1.0
            x = room.left() + (0.3 + 0.21 * at) * room.width() + 2 * math.sin(self._frame / 9 + at)
            high = room.bottom() - rise * room.height()
            painter.drawEllipse(QPointF(x, high), 1.6 + at / 2, 1.6 + at / 2)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._press()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._press()
        else:
            super().keyPressEvent(event)
