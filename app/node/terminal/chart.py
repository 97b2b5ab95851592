"""Draws the held-out curve as text in braille dots, two across and four down in every character cell. Pure:
takes points, returns rows of (text, kind); a view chooses the colours."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import groupby, pairwise

from app.common.drawing import axis_top
from app.node.record.records import Probe

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bit of each dot of a braille cell, by row and column (Unicode 10.0, table 2800)."""
_LABEL = 6
"""Columns of the left axis, wide enough for "100 % "."""


class ChartKind(Enum):
    AXIS = "axis"
    ERROR = "error"
    LINE = "line"
    EMPTY = "empty"


Row = list[tuple[str, ChartKind]]


def chart(points: Sequence[Probe], width: int, height: int) -> list[Row]:
    """Draws the curve as `height` rows of `width` columns, with both axes, the line, and bars of one standard
    error.

    The vertical axis starts at 0 and ends a little above the highest bar. Needs at least 16 columns and 4 rows.
    """
    columns, rows = width - _LABEL, height - 2
    top = axis_top(max((point.share + point.stderr for point in points), default=0.0))
    first, last = (points[0].round, points[-1].round) if points else (0, 0)
    canvas = _Canvas(columns, rows)
    places = [
        (
            round((point.round - first) / max(1, last - first) * (canvas.width - 1)),
            _level(point.share, top, canvas.height),
        )
        for point in points
    ]
    for (x, _), point in zip(places, points, strict=True):
        low = _level(point.share - point.stderr, top, canvas.height)
        high = _level(point.share + point.stderr, top, canvas.height)
        for y in range(low, high + 1):
            canvas.set(x, y, ChartKind.ERROR)
    for x, y in places[:1]:
        canvas.set(x, y, ChartKind.LINE)
    for (x0, y0), (x1, y1) in pairwise(places):
        for x in range(x0, x1 + 1):
            at, after = (y0 + (y1 - y0) * (k - x0) / max(1, x1 - x0) for k in (x, min(x + 1, x1)))
            for y in range(round(min(at, after)), round(max(at, after)) + 1):
                canvas.set(x, y, ChartKind.LINE)
    labels = {0: top, ((canvas.height - 1) // 2) // 4: top / 2}
    body = [[(_label(labels.get(row)), ChartKind.AXIS), *canvas.row(row)] for row in range(rows)]
    return [*body, *_round_axis(first, last, columns, bool(points))]


def _level(value: float, top: float, height: int) -> int:
    """Returns the height of `value` in dots above the bottom row, within the canvas."""
    return min(height - 1, max(0, round(value / top * (height - 1))))


def _label(value: float | None) -> str:
    text = "" if value is None else f"{100 * value:.0f}%"
    return f"{text:>{_LABEL - 1}}" + ("│" if value is None else "┤")


def _round_axis(first: int, last: int, columns: int, known: bool) -> list[Row]:
    line = f"{'0%':>{_LABEL - 1}}└" + "─" * columns
    start = f"round {first}" if known else ""
    end = f"{last}" if last > first else ""
    room = columns - len(start)
    names = " " * _LABEL + start + f"{end:>{room}}" if len(end) < room else f"{' ' * _LABEL}{end:>{columns}}"
    return [[(line, ChartKind.AXIS)], [(names, ChartKind.AXIS)]]


class _Canvas:
    """Dots with their kind. In a cell with both, the line's colour replaces the error bar's."""

    def __init__(self, columns: int, rows: int) -> None:
        self.width, self.height = columns * 2, rows * 4
        self._columns = columns
        self._dots: dict[tuple[int, int], int] = {}
        self._lined: set[tuple[int, int]] = set()

    def set(self, x: int, y: int, kind: ChartKind) -> None:
        """Sets a dot; `y` counts upwards from the bottom."""
        down = self.height - 1 - y
        cell = (down // 4, x // 2)
        self._dots[cell] = self._dots.get(cell, 0) | _DOTS[down % 4][x % 2]
        if kind is ChartKind.LINE:
            self._lined.add(cell)

    def row(self, row: int) -> Row:
        cells = [
            (
                chr(0x2800 + self._dots[row, column]) if (row, column) in self._dots else " ",
                ChartKind.LINE
                if (row, column) in self._lined
                else ChartKind.ERROR
                if (row, column) in self._dots
                else ChartKind.EMPTY,
            )
            for column in range(self._columns)
        ]
        return [
            ("".join(char for char, _ in run), kind) for kind, run in groupby(cells, key=lambda cell: cell[1])
        ]
