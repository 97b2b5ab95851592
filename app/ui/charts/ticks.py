"""Where an axis has its marks. Pure."""

from __future__ import annotations

import math


def linear(low: float, high: float, about: int) -> list[float]:
    """Round numbers between low and high, about so many of them.

    >>> linear(0, 160, 5), linear(0, 0.52, 4)
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


def whole(low: float, high: float, about: int) -> list[float]:
    """As linear, but whole numbers only: there is no round 2.5.

    >>> whole(0, 3, 6)
    [0, 1, 2, 3]
    """
    return list(dict.fromkeys(int(mark) for mark in linear(low, high, about) if mark == int(mark)))


def logarithmic(low: float, high: float) -> list[float]:
    """1, 2, 5 times powers of ten between low and high (low at least 1); powers alone where there are many.

    >>> logarithmic(1, 60), logarithmic(1, 200_000)
    ([1, 2, 5, 10, 20, 50], [1, 10, 100, 1000, 10000, 100000])
    """
    powers = range(math.floor(math.log10(max(1.0, low))), math.ceil(math.log10(max(1.0, high))) + 1)
    factors = (1, 2, 5) if len(powers) <= 4 else (1,)
    return [mark for power in powers for factor in factors if low <= (mark := factor * 10**power) <= high]


def top(value: float) -> float:
    """The upper end of an axis of shares that holds this value, at least 0.1, at most 1.

    >>> top(0.03), top(0.335), top(0.97)
    (0.1, 0.4, 1.0)
    """
    return next((step for step in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8) if value <= step * 0.98), 1.0)
