"""The race as it is seen: two lanes of water, a fish in each that moves on with every puzzle it solves, and
below them a strip with one field a puzzle."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy

from app.chat.messages import Lap
from app.ui.fish.fish import paint
from app.ui.fish.motion import Moving
from app.ui.language.texts import number, tr
from app.ui.theme import Theme
from app.ui.theme.palette import HEADING, SMALL
from app.ui.theme.theme import font
from app.ui.view.growth import Fish
from app.ui.view.settings import Choices

FRAME_MS = 40
LAP_FRAMES = 3
"""Frames from one puzzle to the next: twenty take about two and a half seconds."""
_LANE, _GAP, _FIELD = 52, 8, 26
_NAME, _COUNT = 118, 44
_EASE = 0.2
"""Of what is left of its way a fish swims in a frame."""
_LONGEST = 66
"""Pixels of the longest fish."""


class Track(Moving):
    """Shows the laps one after another. `looked` tells the place of the one that is looked at; `arrived` comes
    when every lap so far is in sight."""

    looked = Signal(int)
    arrived = Signal()

    def __init__(self, theme: Theme, choices: Choices) -> None:
        super().__init__(choices, FRAME_MS)
        self._theme = theme
        self._laps: list[Lap] = []
        self._names = ("", "")
        self._fish = (Fish(), Fish())
        self._waits: list[Lap] = []
        self._all, self._at, self._frame, self._over = 20, -1, 0, False
        self._places = [0.0, 0.0]
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.frames.timer.timeout.connect(self._step)
        theme.changed.connect(self.update)

    @property
    def laps(self) -> Sequence[Lap]:
        """Those in sight."""
        return self._laps

    @property
    def whole(self) -> bool:
        """Whether none waits for its turn."""
        return not self._waits

    def sizeHint(self) -> QSize:
        return QSize(600, 2 * _LANE + 2 * _GAP + _FIELD + 4)

    def begin(self, names: tuple[str, str], fish: tuple[Fish, Fish], puzzles: int) -> None:
        """To the start."""
        self._names, self._fish, self._all = names, fish, puzzles
        self._laps, self._waits, self._places = [], [], [0.0, 0.0]
        self._at, self._frame, self._over = -1, 0, False
        self.frames.want(True)
        self.update()

    def name(self, after: str) -> None:
        self._names = (self._names[0], after)

    def lap(self, lap: Lap) -> None:
        """One more puzzle was answered; it is shown in its turn."""
        self._all = max(1, lap.puzzles)
        self._waits.append(lap)
        if not self.frames.timer.isActive():
            self._show_all()

    def end(self) -> None:
        """No more come."""
        self._over = True
        if not self.frames.timer.isActive():
            self._show_all()

    def look(self, at: int) -> None:
        """At this puzzle."""
        if 0 <= at < len(self._laps) and at != self._at:
            self._at = at
            self.looked.emit(at)
            self.update()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if self._laps or self._waits:
            self._show_all()

    def _show_all(self) -> None:
        """Without motion, or unseen: at once."""
        waits, self._waits = self._waits, []
        for lap in waits:
            self._take(lap)
        self._places = [self._goal(side) for side in (0, 1)]
        self.update()
        if self._over:
            self.frames.want(False)
        self.arrived.emit()

    def _take(self, lap: Lap) -> None:
        self._laps.append(lap)
        self.look(len(self._laps) - 1)

    def _step(self) -> None:
        self._frame += 1
        if self._waits and self._frame % LAP_FRAMES == 0:
            self._take(self._waits.pop(0))
        self._places = [place + _EASE * (self._goal(side) - place) for side, place in enumerate(self._places)]
        there = all(abs(self._goal(side) - self._places[side]) < 0.002 for side in (0, 1))
        if self._over and not self._waits and there:
            self._show_all()
        self.update()

    def _goal(self, side: int) -> float:
        """Share of the way."""
        solved = sum((lap.before, lap.after)[side].solved for lap in self._laps)
        return solved / self._all

    def _field(self, at: int) -> QRectF:
        wide = (self.width() - _NAME - _COUNT) / self._all
        return QRectF(_NAME + at * wide, 2 * (_LANE + _GAP), wide, _FIELD)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for side in (0, 1):
            self._lane(painter, side)
        for at in range(self._all):
            self._paint_field(painter, at)
        painter.end()

    def _lane(self, painter: QPainter, side: int) -> None:
        theme, colour = self._theme, ("text_faint", "own")[side]
        above = side * (_LANE + _GAP)
        water = QRectF(_NAME, above, self.width() - _NAME - _COUNT, _LANE)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour("accent_soft", 0.55) if side else theme.colour("sunken"))
        painter.drawRoundedRect(water, 12, 12)
        painter.setPen(QPen(theme.colour("line"), 1))
        for quarter in (1, 2, 3):
            x = water.left() + quarter * water.width() / 4
            painter.drawLine(QPointF(x, above + 8), QPointF(x, above + _LANE - 8))
        painter.setPen(theme.colour("text"))
        painter.setFont(font(SMALL, font(SMALL).Weight.DemiBold))
        left = QRectF(0, above, _NAME - 12, _LANE)
        painter.drawText(left, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self._names[side])
        length = _LONGEST * self._fish[side].length
        way = water.width() - length - 16
        nose = QPointF(water.left() + 8 + length + way * self._places[side], water.center().y())
        phase = (self._frame / 9 + side / 3) if self.frames.timer.isActive() else 0.0
        paint(painter, theme, self._fish[side], nose, length, phase, colour)
        painter.setPen(theme.colour("text"))
        painter.setFont(font(HEADING, font(HEADING).Weight.DemiBold))
        right = QRectF(water.right(), above, _COUNT, _LANE)
        solved = sum((lap.before, lap.after)[side].solved for lap in self._laps)
        painter.drawText(right, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, number(solved))

    def _paint_field(self, painter: QPainter, at: int) -> None:
        """A triangle up where only the model as it is now solved it, one down where only the one before did, a
        bar where both, a dot where neither."""
        theme, room = self._theme, self._field(at).adjusted(1.5, 0, -1.5, 0)
        lap = self._laps[at] if at < len(self._laps) else None
        before, after = (lap.before.solved, lap.after.solved) if lap is not None else (False, False)
        painter.setPen(Qt.PenStyle.NoPen)
        ground = "good_soft" if after and not before else "warn_soft" if before and not after else "sunken"
        painter.setBrush(theme.colour(ground))
        painter.drawRoundedRect(room, 5, 5)
        if at == self._at:
            painter.setPen(QPen(theme.colour("accent"), 1.6))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(room.adjusted(0.8, 0.8, -0.8, -0.8), 5, 5)
            painter.setPen(Qt.PenStyle.NoPen)
        if lap is None:
            return
        middle = room.center()
        if before == after:
            painter.setBrush(theme.colour("text_faint" if after else "line_strong"))
            if after:
                painter.drawRoundedRect(QRectF(middle.x() - 5, middle.y() - 2, 10, 4), 2, 2)
            else:
                painter.drawEllipse(middle, 2.2, 2.2)
            return
        up = 1 if after else -1
        painter.setBrush(theme.colour("good" if after else "warn"))
        points = [QPointF(0, -5.5 * up), QPointF(5.5, 4 * up), QPointF(-5.5, 4 * up)]
        painter.drawPolygon(QPolygonF([middle + point for point in points]))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point(event.position())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._point(event.position())

    def _point(self, where: QPointF) -> None:
        if not self._waits:
            self.look(next((at for at in range(len(self._laps)) if self._field(at).contains(where)), -1))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()), 0)
        if step:
            self.look(self._at + step)
        else:
            super().keyPressEvent(event)


def outcome(lap: Lap) -> str:
    """What became of a puzzle, in words."""
    if lap.before.solved == lap.after.solved:
        return tr("both solved it") if lap.after.solved else tr("neither solved it")
    return tr("only After solved it") if lap.after.solved else tr("only Before solved it")
