"""The swarm as water: peers as fish with their names around this model's own. An answer swims over when it is
learned from. Everything it shows is in the list as well."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from hashlib import blake2b

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QColor,
    QFocusEvent,
    QFont,
    QKeyEvent,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPixmap,
)
from PySide6.QtWidgets import QSizePolicy

from app.common.text import safe_line
from app.node.record.snapshot import Peer
from app.ui.fish.fish import paint
from app.ui.fish.motion import Moving
from app.ui.fish.places import arc, eased, places
from app.ui.theme import Theme
from app.ui.theme.palette import SMALL
from app.ui.theme.theme import font
from app.ui.view.growth import Fish
from app.ui.view.settings import Choices

MOST = 18
"""Fish there is room for: those seen last."""
_HIGH = 208
_OWN, _LEAST, _LARGEST = 96, 40, 68
"""Lengths in pixels: of this model's own at its longest, of peers."""
_STROKES = 8
"""Pictures of a stroke of a tail."""
_STROKE = 9
_LAP = 520
"""Frames of a stroke, and of a way there and back."""
_FLIGHT = 26
"""Frames that an answer is under way."""
_GONE_S = 1800.0
"""Who has shown nothing for so long is paler."""
_REACH = 46


class _Swimmer:
    """Where one peer is: a place of its own in the water, from its name, and a small round about it."""

    __slots__ = ("across", "down", "far", "peer", "start")

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        seed = blake2b(peer.name.encode(), digest_size=8).digest()
        self.across, self.down, self.start, self.far = (byte / 255 for byte in seed[:4])


class Water(Moving):
    """`chosen` tells the peer under the pointer, or the one that the arrow keys came to; None for none."""

    chosen = Signal(object)

    def __init__(self, theme: Theme, choices: Choices) -> None:
        super().__init__(choices)
        self._theme = theme
        self._name, self._own = "", Fish()
        self._swimmers: list[_Swimmer] = []
        self._flights: list[tuple[str, int]] = []
        self._at: int | None = None
        self._frame, self._now = 0, 0.0
        self._kept: dict[tuple[object, ...], QPixmap] = {}
        self.setMinimumHeight(_HIGH)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.frames.timer.timeout.connect(self._step)
        theme.changed.connect(self._repaint)

    def sizeHint(self) -> QSize:
        return QSize(640, _HIGH)

    @property
    def peers(self) -> list[Peer]:
        """Those that swim here, from left to right."""
        return [one.peer for one in self._swimmers]

    @property
    def choosing(self) -> bool:
        return self._at is not None

    def show_peers(self, peers: Sequence[Peer], name: str, own: Fish, now: float) -> None:
        """`peers`: the latest seen last. `name` is this node's."""
        latest = {peer.name: peer for peer in peers[-MOST:]}
        chosen = self.peers[self._at].name if self._at is not None else None
        if (self._name, self._own) != (name, own):
            self._kept.clear()
        self._name, self._own, self._now = name, own, now
        if [one.peer for one in self._swimmers] != list(latest.values()):
            self._swimmers = _spread([_Swimmer(peer) for peer in latest.values()])
            names = [one.peer.name for one in self._swimmers]
            self._at = names.index(chosen) if chosen in names else None
        self.frames.want(bool(self._swimmers))
        self.update()

    def learned_from(self, names: Sequence[str]) -> None:
        """Answers of these peers were learned from: they swim over, or where nothing moves, are drawn."""
        here = {one.peer.name for one in self._swimmers}
        self._flights = [
            (name, self._frame + 4 * number) for number, name in enumerate(one for one in names if one in here)
        ]
        self.update()

    def choose(self, at: int | None) -> None:
        """The peer at this place, from left to right."""
        if at == self._at:
            return
        self._at = at
        self.chosen.emit(None if at is None else self.peers[at])
        self.update()

    def say(self, told: str) -> None:
        """What screen readers hear of it."""
        if told != self.accessibleDescription():
            self.setAccessibleDescription(told)
            QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.DescriptionChanged))

    def _step(self) -> None:
        self._frame += 1
        if self.window().isMinimized():
            self.frames.settle()
        self.update()

    def _repaint(self) -> None:
        self._kept.clear()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._ground())
        moves = self.frames.timer.isActive()
        self._draw_flights(painter, moves)
        for at, one in enumerate(self._swimmers):
            self._draw_peer(painter, one, at == self._at, moves)
        self._draw_own(painter, moves)
        painter.end()

    def _ground(self) -> QPixmap:
        """Water, light and weed: painted once for a size."""
        key = ("ground", self.width(), self.height(), self.devicePixelRatio(), self.hasFocus())
        if key not in self._kept:
            self._kept = {name: one for name, one in self._kept.items() if name[0] != "ground"}
            self._kept[key] = self._painted(QSize(self.width(), self.height()), self._paint_ground)
        return self._kept[key]

    def _paint_ground(self, painter: QPainter) -> None:
        theme, room = self._theme, QRectF(self.rect()).adjusted(1, 1, -1, -1)
        shape = QPainterPath()
        shape.addRoundedRect(room, 14, 14)
        depth = QLinearGradient(room.topLeft(), room.bottomLeft())
        depth.setColorAt(0.0, theme.colour("accent_soft", 0.35))
        depth.setColorAt(1.0, theme.colour("accent_soft", 1.0))
        painter.setPen(QPen(theme.colour("accent"), 1.5) if self.hasFocus() else Qt.PenStyle.NoPen)
        painter.setBrush(depth)
        painter.drawPath(shape)
        painter.setClipPath(shape)
        painter.setPen(Qt.PenStyle.NoPen)
        for number, (left, wide) in enumerate(((0.12, 70), (0.37, 40), (0.58, 90), (0.83, 50))):
            ray = QPainterPath(QPointF(room.width() * left, 0))
            slant = 60 + 14 * number
            ray.lineTo(room.width() * left + wide, 0)
            ray.lineTo(room.width() * left + wide - slant, room.bottom())
            ray.lineTo(room.width() * left - slant - wide * 0.6, room.bottom())
            painter.fillPath(ray, theme.colour("raised", 0.16))
        weed = QPen(theme.colour("good", 0.36), 3, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap)
        painter.setPen(weed)
        for number in range(11):
            x = room.width() * ((0.03 + 0.618 * number) % 1.0)
            high = 16 + 9 * (number * 7 % 5)
            blade = QPainterPath(QPointF(x, room.bottom()))
            blade.quadTo(QPointF(x - 7, room.bottom() - high / 2), QPointF(x + 4, room.bottom() - high))
            painter.drawPath(blade)

    def _draw_own(self, painter: QPainter, moves: bool) -> None:
        nose, length = self._home(moves), _OWN * self._own.length
        self._draw_fish(painter, nose, length, self._own, "own", moves, left=False, pale=False)
        self._label(painter, self._name, QPointF(nose.x() - length / 2, nose.y() + length * 0.3), "text", True)

    def _draw_peer(self, painter: QPainter, one: _Swimmer, chosen: bool, moves: bool) -> None:
        nose, left = self._place(one, moves)
        length = _long(one.peer)
        pale = one.peer.seen_at is not None and self._now - one.peer.seen_at > _GONE_S
        middle = QPointF(nose.x() + (length if left else -length) / 2, nose.y())
        if chosen:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(self._theme.colour("peer"), 1.5))
            painter.setBrush(self._theme.colour("peer_soft", 0.8))
            painter.drawEllipse(middle - QPointF(0, 0.04 * length), length * 0.72, length * 0.36)
        self._draw_fish(painter, nose, length, Fish(length=1.0, fins=1), "peer", moves, left, pale)
        under = QPointF(middle.x(), nose.y() + length * 0.3)
        self._label(painter, one.peer.name, under, "text" if chosen else "text_soft", chosen)

    def _draw_fish(
        self, painter: QPainter, nose: QPointF, length: float, fish: Fish, colour: str, moves: bool, left: bool,
        pale: bool,
    ) -> None:  # fmt: skip
        stroke = self._frame * _STROKES // _STROKE % _STROKES if moves else 0
        key = ("fish", fish, round(length), colour, stroke, moves, left, self.devicePixelRatio())
        if key not in self._kept:
            size = QSize(math.ceil(length * 1.25), math.ceil(length * 0.8))

            def draw(on: QPainter) -> None:
                front = QPointF(length * (0.05 if left else 1.1), length * 0.4)
                phase = stroke / _STROKES + 1.0 if moves else 0.0
                paint(on, self._theme, fish, front, length, phase, colour, left)

            self._kept[key] = self._painted(size, draw)
        corner = QPointF(nose.x() - length * (0.05 if left else 1.1), nose.y() - length * 0.4)
        painter.setOpacity(0.45 if pale else 1.0)
        painter.drawPixmap(corner, self._kept[key])
        painter.setOpacity(1.0)

    def _label(self, painter: QPainter, text: str, top: QPointF, colour: str, strong: bool) -> None:
        key = ("label", text, colour, strong, self.devicePixelRatio())
        if key not in self._kept:
            letters = font(SMALL, QFont.Weight.DemiBold if strong else QFont.Weight.Normal)
            painter.setFont(letters)
            shown = safe_line(text)
            room = painter.fontMetrics().boundingRect(shown)
            size = QSize(room.width() + 12, room.height() + 4)

            def draw(on: QPainter) -> None:
                on.setFont(letters)
                on.setPen(self._theme.colour(colour))
                on.drawText(QRect(QPoint(0, 0), size), Qt.AlignmentFlag.AlignCenter, shown)

            self._kept[key] = self._painted(size, draw)
        picture = self._kept[key]
        wide = picture.deviceIndependentSize().width()
        x = min(max(4.0, top.x() - wide / 2), self.width() - wide - 4)
        painter.drawPixmap(QPointF(x, top.y()), picture)

    def _draw_flights(self, painter: QPainter, moves: bool) -> None:
        """Moving: a drop of light from the peer to this model. Still: the ways that the last ones took."""
        if not self._flights:
            return
        places = {one.peer.name: self._place(one, moves)[0] for one in self._swimmers}
        goal = self._home(moves)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for name, began in self._flights:
            if name not in places:
                continue
            way = arc(places[name], goal)
            if not moves:
                painter.setPen(QPen(self._theme.colour("peer", 0.55), 1.5, Qt.PenStyle.DashLine))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawPath(way)
                continue
            share = (self._frame - began) / _FLIGHT
            if 0 <= share <= 1:
                for back in range(6):
                    at = way.pointAtPercent(max(0.0, eased(share) - 0.025 * back))
                    painter.setPen(Qt.PenStyle.NoPen)
                    painter.setBrush(self._theme.colour("peer", 0.9 - 0.14 * back))
                    painter.drawEllipse(at, 5.5 - 0.7 * back, 5.5 - 0.7 * back)
        if moves:
            self._flights = [one for one in self._flights if self._frame - one[1] <= _FLIGHT]

    def _home(self, moves: bool) -> QPointF:
        """The nose of this model's own fish."""
        sway = 4 * math.sin(self._frame / 23) if moves else 0.0
        return QPointF(self.width() / 2 + _OWN * self._own.length / 2, self.height() * 0.5 + sway)

    def _place(self, one: _Swimmer, moves: bool) -> tuple[QPointF, bool]:
        """Where its nose is, and whether it looks left."""
        turn = (self._frame / _LAP * (0.7 + 0.6 * one.far) + one.start) % 1.0 if moves else one.start
        length = _long(one.peer)
        way = 18 + 16 * one.far
        x = one.across * (self.width() - 2 * _LARGEST - 2 * way) + _LARGEST + way
        x += way * math.cos(2 * math.pi * turn)
        y = one.down * (self.height() - 74) + 30 + 5 * math.sin(4 * math.pi * turn)
        left = turn < 0.5
        return QPointF(x - length / 2 if left else x + length / 2, y), left

    def _painted(self, size: QSize, draw: Callable[[QPainter], None]) -> QPixmap:
        scale = self.devicePixelRatio()
        picture = QPixmap(size * scale)
        picture.setDevicePixelRatio(scale)
        picture.fill(QColor(0, 0, 0, 0))
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        draw(painter)
        painter.end()
        return picture

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        moves, at = self.frames.timer.isActive(), event.position()
        near = [
            (math.hypot(place.x() - at.x(), place.y() - at.y()), number)
            for number, one in enumerate(self._swimmers)
            for place in (self._middle(one, moves),)
        ]
        closest = min(near, default=(math.inf, 0))
        self.choose(closest[1] if closest[0] <= _REACH else None)

    def _middle(self, one: _Swimmer, moves: bool) -> QPointF:
        nose, left = self._place(one, moves)
        return nose + QPointF((_long(one.peer) if left else -_long(one.peer)) / 2, 0)

    def leaveEvent(self, event: QEvent) -> None:
        if not self.hasFocus():
            self.choose(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1, Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1}
        count, key = len(self._swimmers), Qt.Key(event.key())
        if key in step and count:
            first = 0 if step[key] > 0 else count - 1
            self.choose(first if self._at is None else (self._at + step[key]) % count)
        elif key == Qt.Key.Key_Escape and self._at is not None:
            self.choose(None)
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.choose(None)
        self.update()


def _long(peer: Peer) -> float:
    """The length of a fish, by how many groups have come of its peer.

    >>> [_long(Peer(name="a", groups=groups)) for groups in (0, 1, 3, 100)]
    [40.0, 48.0, 56.0, 68]
    """
    return min(_LARGEST, _LEAST + 8 * math.log2(1 + peer.groups))


def _spread(swimmers: list[_Swimmer]) -> list[_Swimmer]:
    """From left to right, each at a place of its own: names decide who is where, and none lies on another."""
    order = sorted(swimmers, key=lambda one: one.across)
    for one, (across, down) in zip(order, places(len(order)), strict=True):
        one.across, one.down = across, down
    return order
