"""The curve: line and error band, values under the pointer, zoom, pan, smoothing; mouse and keyboard
alike. Painted by hand: pyqtgraph on the same 100,000 points took 72 MB more, started 0.6 s later and
needed 46 to 81 ms a frame (figures of this project's own measurement)."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPixmap,
    QPolygonF,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QLabel, QSizePolicy

from app.common import drawing
from app.ui.charts.series import ChartPoint, Series
from app.ui.language.texts import number, percent, tr
from app.ui.theme import Theme
from app.ui.theme.theme import SMALL, font
from app.ui.widgets.pieces import antialiased_painter

_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 14, 30
_DOTS = 80
"""Maximum visible points that are drawn with a dot each."""
_ZOOM = 1.25
_COLUMN = 4.0
"""Minimum pixels per drawn point of a dense line; at most halved."""
_DENSE = 160
"""Number of drawn points above which the pen is thin: wide strokes take most of a frame."""
_MIN = 4.0
"""Minimum rounds shown at full zoom."""


class Chart(QLabel):
    """A line chart of shares in [0, 1] over rounds. `hovered` emits the index of a point, -1 for none. For
    screen readers it is a text, its accessible name."""

    hovered = Signal(int)
    view_changed = Signal()

    def __init__(self, theme: Theme, colour: str = "own") -> None:
        super().__init__()
        self._theme, self._colour = theme, colour
        self.series = Series()
        self._beside: float | None = None
        self._shown: tuple[float, float] | None = None
        self._smooth = 0
        self._at: int | None = None
        self._drag: tuple[float, float, float] | None = None
        self._still: QPixmap | None = None
        self._top = 1.0
        """The upper end of the axis in `_still`, a share."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumHeight(106)
        theme.changed.connect(self.redraw)

    def sizeHint(self) -> QSize:
        return QSize(640, 280)

    def show_series(self, points: Sequence[tuple[float, float, float]], colour: str = "own") -> None:
        """Shows points (round, share, standard error). If points were only added, the zoom stays."""
        old = self.series
        count = len(old)
        grew = count and len(points) >= count and points[count - 1][:2] == (old.xs[-1], old.ys[-1])
        grew = grew and points[0][:2] == (old.xs[0], old.ys[0]) and colour == self._colour
        if grew and len(points) == count:
            return
        self._colour = colour
        if grew:
            old.extend(points[count:])
        else:
            self.series, self._at = Series(points), None
        self.redraw()

    def show_beside(self, share: float | None) -> None:
        """Draws a thin level line: what something simpler gets. None takes it away."""
        if share != self._beside:
            self._beside = share
            self.redraw()

    def set_smooth(self, around: int) -> None:
        """Averages over this many points on either side; 0 shows the points themselves."""
        self._smooth = around
        self.redraw()

    def show_all(self) -> None:
        self._shown = None
        self.redraw()

    @property
    def zoomed(self) -> bool:
        return self._shown is not None

    def redraw(self) -> None:
        self._still = None
        self.update()
        self.view_changed.emit()

    def show_range(self, left: float, right: float) -> None:
        """Zooms to these rounds, limited to the existing ones."""
        first, last = self._whole()
        width = min(max(right - left, _MIN), last - first)
        left = min(max(left, first), last - width)
        self._shown = None if width >= (last - first) * 0.999 else (left, left + width)
        self.redraw()

    def range(self) -> tuple[float, float]:
        return self._shown or self._whole()

    def _whole(self) -> tuple[float, float]:
        xs = self.series.xs
        if not len(xs):
            return 0.0, 10.0
        return min(xs[0], 0.0), max(xs[-1], xs[0] + (_MIN if len(xs) > 1 else 10.0))

    # ---- places

    def _plot(self) -> QRectF:
        return QRectF(
            _LEFT, _TOP, max(10, self.width() - _LEFT - _RIGHT), max(10, self.height() - _TOP - _BOTTOM)
        )

    def _x(self, x: float, plot: QRectF) -> float:
        left, right = self.range()
        return plot.left() + (x - left) / max(1e-12, right - left) * plot.width()

    def _round_at(self, px: float, plot: QRectF) -> float:
        left, right = self.range()
        return left + (px - plot.left()) / plot.width() * (right - left)

    # ---- painting

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._still = None

    def paintEvent(self, event: QPaintEvent) -> None:
        scale = self.devicePixelRatioF()
        if self._still is None or self._still.devicePixelRatio() != scale:
            self._still = QPixmap(self.size() * scale)
            self._still.setDevicePixelRatio(scale)
            self._still.fill(Qt.GlobalColor.transparent)
            painter = QPainter(self._still)
            self._paint_still(painter)
            painter.end()
        painter = antialiased_painter(self)
        painter.drawPixmap(0, 0, self._still)
        if self._at is not None and self._at < len(self.series):
            self._paint_pointer(painter)
        if self.hasFocus():
            painter.setPen(QPen(self._theme.colour("accent"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 8, 8)
        painter.end()

    def _paint_still(self, painter: QPainter) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(font(SMALL))
        plot = self._plot()
        line, self._top = self._line(plot)
        self._paint_axes(painter, plot, self._top)
        if line:
            painter.setClipRect(plot.adjusted(-4, -6, 4, 2))
            self._paint_line(painter, plot, self._top, line)

    def _line(self, plot: QRectF) -> tuple[list[ChartPoint], float]:
        """Returns the drawn points and the upper end of their axis."""
        line = self.series.line(*self.range(), round(plot.width() / _COLUMN), self._smooth)
        highest = max((1.08 * place.y if self._smooth else place.high for place in line), default=0.0)
        return line, drawing.axis_top(max(highest, self._beside or 0.0))

    def _paint_axes(self, painter: QPainter, plot: QRectF, top: float) -> None:
        _heights(painter, self._theme, plot, top)
        left, right = self.range()
        about = max(2, round(plot.width() / 110))
        marks = drawing.integer_ticks(left, right, about)
        places = [(self._x(mark, plot), number(mark)) for mark in marks]
        _rounds(painter, self._theme, plot, self.width() - _RIGHT, places)

    def _paint_line(self, painter: QPainter, plot: QRectF, top: float, line: Sequence[ChartPoint]) -> None:
        def y(value: float) -> float:
            return plot.bottom() - min(max(value, 0.0), top * 1.1) / top * plot.height()

        xs = [self._x(place.x, plot) for place in line]
        colour = self._theme.colour(self._colour)
        band = QPolygonF([QPointF(x, y(place.high)) for x, place in zip(xs, line, strict=True)])
        band.append([QPointF(x, y(place.low)) for x, place in reversed(list(zip(xs, line, strict=True)))])
        if self._beside is not None:
            painter.setPen(QPen(self._theme.colour("text_faint"), 1.0, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(plot.left(), y(self._beside)), QPointF(plot.right(), y(self._beside)))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour(self._colour, 0.07 if self._smooth else 0.15))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, len(line) <= _DENSE)
        painter.drawPolygon(band)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        dense = len(line) > _DENSE and not self._smooth
        join = Qt.PenJoinStyle.BevelJoin if len(line) > _DENSE else Qt.PenJoinStyle.RoundJoin
        painter.setPen(QPen(colour, 1.0 if dense else 2.2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap, join))
        if len(line) == 1:
            painter.drawLine(QPointF(xs[0], y(line[0].low)), QPointF(xs[0], y(line[0].high)))
        path = QPainterPath()
        path.addPolygon(QPolygonF([QPointF(x, y(place.y)) for x, place in zip(xs, line, strict=True)]))
        painter.drawPath(path)
        first, last = self.series.span(*self.range())
        painter.setPen(QPen(self._theme.colour("surface"), 1.5))
        painter.setBrush(self._theme.colour(self._colour, 0.45) if self._smooth else colour)
        for at in range(first, last if last - first <= _DOTS else first):
            radius = 4.6 if at == len(self.series) - 1 else 3.2
            dot = QPointF(self._x(self.series.xs[at], plot), y(self.series.ys[at]))
            painter.drawEllipse(dot, radius, radius)

    def _paint_pointer(self, painter: QPainter) -> None:
        assert self._at is not None
        plot, top = self._plot(), self._top
        x = self._x(self.series.xs[self._at], plot)
        value = self.value(self._at)
        y = plot.bottom() - min(value, top) / top * plot.height()
        painter.setPen(QPen(self._theme.colour("line_strong"), 1))
        painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()))
        painter.setPen(QPen(self._theme.colour("surface"), 2))
        painter.setBrush(self._theme.colour(self._colour))
        painter.drawEllipse(QPointF(x, y), 5.5, 5.5)
        _label(painter, self._theme, plot, QPointF(x, y), self.reading(self._at))

    def value(self, at: int) -> float:
        return self.series.mean(at, self._smooth) if self._smooth else self.series.ys[at]

    def reading(self, at: int) -> list[str]:
        """Returns the lines of the label beside a point."""
        error = self.series.errors[at]
        own = percent(self.series.ys[at], 1)
        value = tr("{value} ± {error}", value=own, error=number(100 * error, 1)) if error else own
        lines = [tr("Round {n}", n=number(self.series.xs[at])), value]
        if self._smooth:
            lines.append(tr("smoothed {value}", value=percent(self.value(at), 1)))
        return lines

    # ---- hands

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        plot = self._plot()
        if self._drag is not None:
            start, left, right = self._drag
            moved = (start - event.position().x()) / plot.width() * (right - left)
            self.show_range(left + moved, right + moved)
            return
        self._look_at(self.series.nearest(self._round_at(event.position().x(), plot)))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self._shown is not None:
            self._drag = (event.position().x(), *self._shown)
            self.setCursor(Qt.CursorShape.ClosedHandCursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._drag = None
        self.unsetCursor()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.show_all()

    def leaveEvent(self, event: object) -> None:
        if not self.hasFocus():
            self._look_at(None)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zooms around the pointer while Ctrl is held. Without it the page scrolls, as everywhere else."""
        steps = event.angleDelta().y() / 120
        held = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if not held or not steps or not len(self.series) or (steps < 0 and self._shown is None):
            event.ignore()
            return
        self._zoom(_ZOOM**-steps, self._round_at(event.position().x(), self._plot()))
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows move between points, plus and minus zoom, Home and End jump, 0 or Escape shows everything."""
        last = len(self.series) - 1
        if last < 0:
            return super().keyPressEvent(event)
        at = last if self._at is None else self._at
        match event.key():
            case Qt.Key.Key_Left:
                self._look_at(max(0, at - 1))
            case Qt.Key.Key_Right:
                self._look_at(min(last, at + 1))
            case Qt.Key.Key_Home:
                self._look_at(0)
            case Qt.Key.Key_End:
                self._look_at(last)
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal:
                self._zoom(1 / _ZOOM, self.series.xs[at])
            case Qt.Key.Key_Minus:
                self._zoom(_ZOOM, self.series.xs[at])
            case Qt.Key.Key_0 | Qt.Key.Key_Escape:
                self.show_all()
            case _:
                super().keyPressEvent(event)

    def _zoom(self, factor: float, centre: float) -> None:
        left, right = self.range()
        self.show_range(centre - (centre - left) * factor, centre + (right - centre) * factor)

    def _look_at(self, at: int | None) -> None:
        if at == self._at:
            return
        self._at = at
        if at is not None:
            x = self.series.xs[at]
            left, right = self.range()
            if not left <= x <= right:
                self.show_range(x - (right - left) / 2, x + (right - left) / 2)
            self.setAccessibleDescription(", ".join(self.reading(at)))
        self.hovered.emit(-1 if at is None else at)
        self.update()


def _heights(painter: QPainter, theme: Theme, plot: QRectF, top: float) -> None:
    """Draws grid lines from 0 to `top`, a share, with their percentages."""
    metrics = QFontMetricsF(painter.font())
    for mark in drawing.linear_ticks(0, top, min(10, max(2, round(plot.height() / 64)))):
        y = plot.bottom() - mark / top * plot.height()
        painter.setPen(QPen(theme.colour("grid" if mark else "line_strong"), 1))
        painter.drawLine(QPointF(plot.left(), round(y) + 0.5), QPointF(plot.right(), round(y) + 0.5))
        painter.setPen(theme.colour("text_faint"))
        text = percent(mark, 0 if abs(100 * mark - round(100 * mark)) < 1e-6 else 1)
        painter.drawText(QPointF(plot.left() - metrics.horizontalAdvance(text) - 8, y + 4), text)


def _rounds(
    painter: QPainter, theme: Theme, plot: QRectF, right: float, places: Sequence[tuple[float, str]]
) -> None:
    """Draws the round numbers at `places` that leave room for the axis title, which ends at `right`."""
    metrics = QFontMetricsF(painter.font())
    painter.setPen(theme.colour("text_faint"))
    name = tr("rounds")
    begins = right - metrics.horizontalAdvance(name)
    for x, text in places:
        half = metrics.horizontalAdvance(text) / 2
        if x + half < begins - 12:
            painter.drawText(QPointF(max(plot.left() - 4, x - half), plot.bottom() + 20), text)
    painter.drawText(QPointF(begins, plot.bottom() + 20), name)


def _label(painter: QPainter, theme: Theme, plot: QRectF, at: QPointF, texts: Sequence[str]) -> None:
    """Draws lines of text in a box beside a point of the curve, on the side that has room."""
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
