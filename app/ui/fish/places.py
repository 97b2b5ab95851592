"""Where fish stand in the water, and the arc of an answer that swims over."""

from __future__ import annotations

from PySide6.QtCore import QPointF
from PySide6.QtGui import (
    QPainterPath,
)

_LANES = (0.02, 0.47, 0.96)
"""Depths, as shares."""


def places(count: int) -> list[tuple[float, float]]:
    """So many places, as shares of the water's width and height, from left to right. They lie in three lanes,
    and leave the middle to this model's own fish.

    >>> places(2)
    [(0.25, 0.47), (0.75, 0.47)]
    >>> len(set(places(18))), min(places(18)) < (0.1, 1.0), max(places(18)) > (0.9, 0.0)
    (18, True, True)
    """
    columns, free = 1, [(0.5, 0.02)]
    while len(free) < count or columns < 2:
        columns += 1
        free = sorted(
            ((column + 0.5 + 0.2 * (lane - 1) * (-1) ** column / columns) / columns, down)
            for column in range(columns)
            for lane, down in enumerate(_LANES)
            if lane != 1 or abs((column + 0.5) / columns - 0.5) > 0.17
        )
    return [free[at * len(free) // count + len(free) // (2 * count)] for at in range(count)]


def arc(start: QPointF, goal: QPointF) -> QPainterPath:
    way = QPainterPath(start)
    lift = QPointF(0, -0.25 * abs(goal.x() - start.x()) - 12)
    way.quadTo((start + goal) / 2 + lift, goal)
    return way


def eased(share: float) -> float:
    """Slow at both ends.

    >>> eased(0.0), eased(0.5), eased(1.0)
    (0.0, 0.5, 1.0)
    """
    return share * share * (3 - 2 * share)
