"""The values of a curve at any zoom: drawing 100,000 points takes no longer than drawing one per column. Where
points are closer than that, neighbours are joined into a mean with the lowest and highest value, so peaks are
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
        self.xs, self.ys, self.errors = array("d"), array("d"), array("d")
        self._lows, self._highs, self._sums = array("d"), array("d"), array("d", [0.0])
        self.extend(points)

    def __len__(self) -> int:
        return len(self.xs)

    def extend(self, points: Iterable[tuple[float, float, float]]) -> None:
        for x, y, error in points:
            self.xs.append(x)
            self.ys.append(y)
            self.errors.append(error)
            self._lows.append(y - error)
            self._highs.append(y + error)
            self._sums.append(self._sums[-1] + y)

    def span(self, left: float, right: float) -> tuple[int, int]:
        """Returns the indices (first, one after the last) of the points between two x, with one more on each
        side so that lines reach the edge."""
        return max(0, bisect_left(self.xs, left) - 1), min(len(self), bisect_right(self.xs, right) + 1)

    def line(self, left: float, right: float, columns: int, smooth: int = 0) -> list[ChartPoint]:
        """Returns the curve between two x in about `columns` points, at most twice as many; each is a mean over
        `smooth` points on either side. Points are joined by powers of two from the first on, so that a curve
        that is moved keeps its shape."""
        first, last = self.span(left, right)
        step = 1
        while last - first > 2 * step * max(1, columns):
            step *= 2
        made = []
        for at in range(first - first % step, last, step):
            end = min(at + step, len(self))
            value = self.mean((at + end) // 2, smooth + (end - at) // 2) if smooth else self._mean(at, end)
            middle = (self.xs[at] + self.xs[end - 1]) / 2
            made.append(ChartPoint(middle, value, min(self._lows[at:end]), max(self._highs[at:end])))
        return made

    def _mean(self, first: int, end: int) -> float:
        return self.ys[first] if end - first == 1 else (self._sums[end] - self._sums[first]) / (end - first)

    def mean(self, at: int, around: int) -> float:
        """Returns the mean of the existing points from `at - around` to `at + around`."""
        first, last = max(0, at - around), min(len(self), at + around + 1)
        return self._mean(first, last)

    def nearest(self, x: float) -> int | None:
        """Returns the index of the point closest to x; None if there are no points."""
        if not len(self):
            return None
        at = bisect_left(self.xs, x)
        around = [i for i in (at - 1, at) if 0 <= i < len(self)]
        return min(around, key=lambda i: abs(self.xs[i] - x))
