"""A week to paint on: seven days by twenty-four hours, by pointer and by keyboard."""

from __future__ import annotations

from PySide6.QtCore import QLocale, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.node.rules.week import DAYS, HOURS, Week
from app.ui.language.texts import counted, percent, tr
from app.ui.theme import Theme
from app.ui.theme.palette import SMALL
from app.ui.theme.theme import font

_LEFT, _TOP, _ROW = 46, 22, 25
_GAP = 1.5
_STEPS = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}
_HEAD = -1
"""As a day: the hours' names, above all days. As an hour: the days' names, left of all hours."""


class WeekGrid(QWidget):
    """`week` is what is painted. `changed` tells that a person has painted, once a stroke.

    An hour that is open in part is partly filled, and stays as it is until it is painted over. Arrows move,
    Space paints, Shift with an arrow paints on; before the first hour is the whole day, above Monday the whole
    hour.
    """

    changed = Signal()
    moved = Signal()

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme, self._name = theme, name
        self.week = Week()
        self.at = (0, 0)
        """(day, hour) where the keyboard is."""
        self._anchor: tuple[int, int] | None = None
        self._before, self._on = Week(), True
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMouseTracking(True)
        theme.changed.connect(self.update)
        self._say()

    def sizeHint(self) -> QSize:
        return QSize(_LEFT + HOURS * 26, _TOP + DAYS * _ROW + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(_LEFT + HOURS * 13, _TOP + DAYS * _ROW + 2)

    def show_week(self, week: Week) -> None:
        self.week = week
        self._say()
        self.update()

    def place(self, day: int, hour: int) -> QRectF:
        """Where an hour, or with _HEAD a name, is drawn."""
        width = (self.width() - _LEFT) / HOURS
        left = _LEFT + hour * width if hour >= 0 else 0.0
        top = _TOP + day * _ROW if day >= 0 else 0.0
        return QRectF(left, top, width if hour >= 0 else _LEFT, _ROW if day >= 0 else _TOP)

    def found(self, point: QPoint) -> tuple[int, int]:
        """The (day, hour) below a point, or the nearest."""
        width = max(1.0, (self.width() - _LEFT) / HOURS)
        hour = _HEAD if point.x() < _LEFT else min(HOURS - 1, int((point.x() - _LEFT) / width))
        day = _HEAD if point.y() < _TOP else min(DAYS - 1, (point.y() - _TOP) // _ROW)
        return day, hour

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self._begin(self.found(event.position().toPoint()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        to = self.found(event.position().toPoint())
        if self._anchor is not None and to != self.at:
            self._stroke(to)
        self.setToolTip(self.said(to))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._end()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = _STEPS.get(Qt.Key(event.key()))
        if event.key() in (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._begin(self.at)
            self._end()
        elif step is not None:
            self._step(step, painting=bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
        elif event.key() == Qt.Key.Key_Home:
            self._go((self.at[0], _HEAD))
        elif event.key() == Qt.Key.Key_End:
            self._go((self.at[0], HOURS - 1))
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(font(SMALL))
        painter.setPen(self._theme.colour("text_faint"))
        names = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
        for day in range(DAYS):
            painter.drawText(self.place(day, _HEAD).adjusted(6, 0, 0, 0), names, day_name(day, short=True))
        every = 1 if self.place(0, 0).width() >= 22 else 3
        for hour in range(0, HOURS, every):
            area = self.place(_HEAD, hour).adjusted(-8, 0, 8, 0)
            painter.drawText(area, int(Qt.AlignmentFlag.AlignCenter), str(hour))
        painter.setPen(Qt.PenStyle.NoPen)
        for day in range(DAYS):
            for hour in range(HOURS):
                self._paint_hour(painter, self.place(day, hour), self.week.share(day, hour))
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(self._theme.colour("text"), 2))
            painter.drawRoundedRect(self.place(*self.at).adjusted(1, 1, -1, -1), 4, 4)
        painter.end()

    def _paint_hour(self, painter: QPainter, area: QRectF, share: float) -> None:
        area = area.adjusted(_GAP, _GAP, -_GAP, -_GAP)
        painter.setBrush(self._theme.colour("line"))
        painter.drawRoundedRect(area, 3, 3)
        if share:
            painter.setBrush(self._theme.colour("accent"))
            filled = QRectF(area)
            filled.setTop(area.bottom() - max(3.0, area.height() * share))
            painter.drawRoundedRect(filled, 3, 3)

    def _begin(self, at: tuple[int, int]) -> None:
        self._before, self._anchor = self.week.copy(), at
        self._on = not self.week.full(*_block(at, at))
        self._stroke(at)

    def _stroke(self, to: tuple[int, int]) -> None:
        """From where the stroke began up to here: a rectangle, as with a marker."""
        assert self._anchor is not None
        self.week = self._before.copy()
        self.week.fill(*_block(self._anchor, to), self._on)
        self._go(to)

    def _end(self) -> None:
        if self._anchor is not None:
            self._anchor = None
            if self.week.text() != self._before.text():
                self.changed.emit()

    def _step(self, step: tuple[int, int], painting: bool) -> None:
        day, hour = self.at[0] + step[0], self.at[1] + step[1]
        if not (_HEAD <= day < DAYS and _HEAD <= hour < HOURS):
            return
        if painting:
            self._before, self._anchor = self.week.copy(), self.at
            self._on = self.week.full(*_block(self.at, self.at))
            self._stroke((day, hour))
            self._end()
        else:
            self._go((day, hour))

    def _go(self, at: tuple[int, int]) -> None:
        self.at = at
        self._say()
        self.update()
        self.moved.emit()

    def said(self, at: tuple[int, int]) -> str:
        """One place in words."""
        day, hour = at
        if day < 0 and hour < 0:
            return tr("the whole week")
        if hour < 0:
            return tr("{day}, the whole day", day=day_name(day))
        span = f"{hour:02}:00–{hour + 1:02}:00"
        if day < 0:
            return tr("{span}, every day", span=span)
        share = self.week.share(day, hour)
        how = tr("off") if share == 0 else tr("on") if share == 1 else tr("{share} on", share=percent(share))
        return f"{day_name(day)}, {span}: {how}"

    def _say(self) -> None:
        self.setAccessibleName(f"{self._name}. {self.said(self.at)}")
        self.setAccessibleDescription(summary(self.week))


def _block(one: tuple[int, int], other: tuple[int, int]) -> tuple[range, range]:
    """The days and hours between two places. A name stands for its whole row or column."""
    days, hours = sorted((one[0], other[0])), sorted((one[1], other[1]))
    return (
        range(DAYS) if days[0] < 0 else range(days[0], days[1] + 1),
        range(HOURS) if hours[0] < 0 else range(hours[0], hours[1] + 1),
    )


def day_name(day: int, short: bool = False) -> str:
    """A weekday (0 is Monday) in the language of the window."""
    kind = QLocale.FormatType.ShortFormat if short else QLocale.FormatType.LongFormat
    return QLocale().standaloneDayName(day + 1, kind)


def summary(week: Week) -> str:
    """A week in one sentence."""
    if week.always:
        return tr("Nothing is marked, so it may learn any time.")
    hours = week.minutes / 60
    shown = f"{hours:.0f}" if hours == int(hours) else f"{hours:.1f}"
    days = sum(any(week.share(day, hour) for hour in range(HOURS)) for day in range(DAYS))
    return tr(
        "{hours} of 168 hours a week are marked, {days}.",
        hours=shown,
        days=counted("on {n} day", "on {n} days", days),
    )
