"""The values of a curve at any zoom: drawing 100,000 points takes no longer than drawing one per column.

Each level joins two neighbours of the level below into a mean with the lowest and highest value, so peaks are
kept. Points can be appended. Pure: no Qt."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple


class ChartPoint(NamedTuple):
    """A point of the drawn line: its x, the mean value, and the error or spread around it."""

    x: float
    y: float
    low: float
    high: float


class Series:
    """Values over x, which must not decrease. `error` is one standard error of each value, 0 if unknown."""

    def __init__(self, points: Iterable[tuple[float, float, float]] = ()) -> None:
        self._levels: list[tuple[array[float], array[float], array[float], array[float]]] = [_level()]
        self._sums = array("d", [0.0])
        self.errors = array("d")
        self.extend(points)

    def __len__(self) -> int:
        return len(self.xs)

    @property
    def xs(self) -> array[float]:
        return self._levels[0][0]

    @property
    def ys(self) -> array[float]:
        return self._levels[0][1]

    def extend(self, points: Iterable[tuple[float, float, float]]) -> None:
        for x, y, error in points:
            self._sums.append(self._sums[-1] + y)
            self.errors.append(error)
            self._append(0, x, y, y - error, y + error)

    def _append(self, depth: int, x: float, y: float, low: float, high: float) -> None:
        while True:
            if depth == len(self._levels):
                self._levels.append(_level())
            xs, ys, lows, highs = self._levels[depth]
            for values, value in zip(self._levels[depth], (x, y, low, high), strict=True):
                values.append(value)
            if len(xs) % 2:
                return
            x, y = (xs[-1] + xs[-2]) / 2, (ys[-1] + ys[-2]) / 2
            low, high, depth = min(lows[-1], lows[-2]), max(highs[-1], highs[-2]), depth + 1

    def span(self, left: float, right: float) -> tuple[int, int]:
        """Returns the indices (first, one after the last) of the points between two x, with one more on each
        side so that lines reach the edge."""
        return max(0, bisect_left(self.xs, left) - 1), min(len(self), bisect_right(self.xs, right) + 1)

    def line(self, left: float, right: float, columns: int, smooth: int = 0) -> list[ChartPoint]:
        """Returns the curve between two x in about `columns` points, at most twice as many; each is a mean over
        `smooth` points on either side."""
        first, last = self.span(left, right)
        depth = 0
        while (last - first) >> depth > 2 * max(1, columns):
            depth += 1
        made = []
        at = first
        while at < last:
            step = depth  # towards the end the coarse levels are not complete, and finer ones take over
            while step and (
                at & ((1 << step) - 1)
                or at + (1 << step) > len(self)
                or (at >> step) >= len(self._levels[step][0])
            ):
                step -= 1
            xs, ys, lows, highs = self._levels[step]
            place = at >> step
            value = self.mean(at + (1 << step >> 1), smooth + (1 << step >> 1)) if smooth else ys[place]
            made.append(ChartPoint(xs[place], value, lows[place], highs[place]))
            at += 1 << step
        return made

    def mean(self, at: int, around: int) -> float:
        """Returns the mean of the existing points from `at - around` to `at + around`."""
        first, last = max(0, at - around), min(len(self), at + around + 1)
        return (self._sums[last] - self._sums[first]) / (last - first)

    def nearest(self, x: float) -> int | None:
        """Returns the index of the point closest to x; None if there are no points."""
        if not len(self):
            return None
        at = bisect_left(self.xs, x)
        around = [i for i in (at - 1, at) if 0 <= i < len(self)]
        return min(around, key=lambda i: abs(self.xs[i] - x))


def _level() -> tuple[array[float], array[float], array[float], array[float]]:
    return array("d"), array("d"), array("d"), array("d")
