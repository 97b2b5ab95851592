"""Round numbers for the axes of a chart. Pure functions."""

from __future__ import annotations

import math


def linear_ticks(low: float, high: float, about: int) -> list[float]:
    """Returns about `about` round tick values between low and high.

    >>> linear_ticks(0, 160, 5), linear_ticks(0, 0.52, 4)
    ([0, 50, 100, 150], [0.0, 0.2, 0.4])
    """
    if not high > low:
        return [low]
    raw = (high - low) / max(1, about)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    marks = [round(n * step, 10) for n in range(first, last + 1)]
    return [int(mark) for mark in marks] if step >= 1 and step == int(step) else marks


def integer_ticks(low: float, high: float, about: int) -> list[float]:
    """Like `linear_ticks`, but returns integers only, dropping ticks such as 2.5.

    >>> integer_ticks(0, 3, 6)
    [0, 1, 2, 3]
    """
    return list(dict.fromkeys(int(mark) for mark in linear_ticks(low, high, about) if mark == int(mark)))


def axis_top(value: float) -> float:
    """Returns the upper end of an axis of shares that contains `value`: at least 0.1, at most 1.

    >>> axis_top(0.03), axis_top(0.335), axis_top(0.97)
    (0.1, 0.4, 1.0)
    """
    return next((step for step in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8) if value <= step * 0.98), 1.0)
