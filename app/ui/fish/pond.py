"""The model's fish in its water: it swims while the model learns, and rests while that rests.

It moves only where neither the setting nor the system asks for less motion; until that is known, it is still.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import cache

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import (
    QHideEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPixmap,
    QShowEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.desktop import motion
from app.ui.fish.fish import Fish, now, paint, told
from app.ui.language.texts import tr
from app.ui.theme import Theme
from app.ui.view import words
from app.ui.view.settings import Choices
from app.ui.view.view import NodeStatus, View
from app.ui.widgets.pieces import smooth

FRAME_MS = 100
"""Milliseconds per frame: enough for a resting fish, and cheap."""


class System:
    """Asks the system once, in a thread, whether it wants less motion."""

    def __init__(self) -> None:
        self.still = True
        threading.Thread(target=self._ask, daemon=True, name="motion").start()

    def _ask(self) -> None:
        self.still = motion.reduced()


@cache
def system() -> System:
    return System()


def still(choices: Choices) -> bool:
    """Whether nothing may move."""
    return choices["motion"] == "still" or system().still


class Moving(QWidget):
    """A drawing that moves only while it is visible and motion is allowed. `timer` ticks once per frame."""

    def __init__(self, choices: Choices) -> None:
        super().__init__()
        self._choices, self._wanted = choices, False
        self.timer = QTimer(self, interval=FRAME_MS)

    def want(self, on: bool) -> None:
        """Whether there is something visible that moves."""
        self._wanted = on
        self._settle()

    def _settle(self) -> None:
        seen = self.isVisible() and not self.window().isMinimized()
        runs = self._wanted and seen and not still(self._choices)
        if runs != self.timer.isActive():
            self.timer.start() if runs else self.timer.stop()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._settle()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._settle()


_WIDE, _HIGH = 172, 62
_LONGEST, _ROUND = 92, 6
"""Pixels of the longest fish, and of the room around it."""
_LAP = 190
"""Frames from one side of the water to the other and back."""
_STROKE = 11
"""Frames of a stroke of its tail."""


class Pond(Moving):
    """`press` is called by a click, Space or Enter."""

    def __init__(self, theme: Theme, choices: Choices, press: Callable[[], object]) -> None:
        super().__init__(choices)
        self._theme, self._press = theme, press
        self._fish, self._swims = Fish(), False
        self._frame = 0
        self._drawn: dict[int, QPixmap] = {}
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # else all behind it is painted each time
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.timer.timeout.connect(self._step)
        theme.changed.connect(self._anew)

    def sizeHint(self) -> QSize:
        return QSize(_WIDE, _HIGH)

    def show_view(self, view: View) -> None:
        fish, swims = now(view), view.state is NodeStatus.LEARNING
        name = words.model_name(view)
        said = told(view)
        self.setToolTip(said)
        self.setAccessibleName(tr("The fish of {name}", name=name) if name else tr("Your model's fish"))
        self.setAccessibleDescription(said)
        if (fish, swims) != (self._fish, self._swims):
            self._fish, self._swims = fish, swims
            self._anew()
        self.want(swims)

    def _anew(self) -> None:
        self._drawn.clear()
        self.update()

    def _step(self) -> None:
        self._frame += 1
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = smooth(self)
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
        """The fish at this moment of its stroke; painted once per moment, because all strokes are alike."""
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
        """Plants on the ground, waving a little."""
        colour = self._theme.colour("good", 0.42)
        painter.setPen(QPen(colour, 2.4, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        for number, (place, high) in enumerate(((0.07, 20), (0.11, 13), (0.86, 16), (0.9, 25), (0.94, 12))):
            x, ground = room.left() + place * room.width(), room.bottom()
            sway = 2.2 * math.sin(self._frame / 14 + number)
            blade = QPainterPath(QPointF(x, ground))
            blade.quadTo(QPointF(x - 3, ground - high / 2), QPointF(x + sway, ground - high))
            painter.drawPath(blade)

    def _bubbles(self, painter: QPainter, room: QRectF) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour("own", 0.28))
        for number in range(3):
            rise = (self._frame / 46 + number / 3) % 1.0
            x = room.left() + (0.3 + 0.21 * number) * room.width() + 2 * math.sin(self._frame / 9 + number)
            high = room.bottom() - rise * room.height()
            painter.drawEllipse(QPointF(x, high), 1.6 + number / 2, 1.6 + number / 2)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._press()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._press()
        else:
            super().keyPressEvent(event)
