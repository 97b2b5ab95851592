"""Draws a curve as an SVG card without Qt, and computes axis ticks. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDE, HIGH = 960, 576
"""Width and height of a card in pixels."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 24, 110, 46
_DOTS = 80
"""Maximum number of points that are each drawn with a dot."""
_FISH = "M9.6 0C6.4-4.6-.6-6-5-1.1L-9.6-4.6C-8.6-1.6-8.6 1.6-9.6 4.6L-5 1.1C-.6 6 6.4 4.6 9.6 0Z"
_SCHOOL = ((75, 37, 1.5, 1.0), (56, 51, 1.2, 0.55), (80, 64, 1.3, 0.78))
"""Fish of Shoal's mark: x, y, scale, opacity."""


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


def logarithmic_ticks(low: float, high: float) -> list[float]:
    """Returns ticks at 1, 2 and 5 times powers of ten between low and high (low at least 1); only the powers if
    there are many.

    >>> logarithmic_ticks(1, 60), logarithmic_ticks(1, 200_000)
    ([1, 2, 5, 10, 20, 50], [1, 10, 100, 1000, 10000, 100000])
    """
    powers = range(math.floor(math.log10(max(1.0, low))), math.ceil(math.log10(max(1.0, high))) + 1)
    factors = (1, 2, 5) if len(powers) <= 4 else (1,)
    return [mark for power in powers for factor in factors if low <= (mark := factor * 10**power) <= high]


def axis_top(value: float) -> float:
    """Returns the upper end of an axis of shares that contains `value`: at least 0.1, at most 1.

    >>> axis_top(0.03), axis_top(0.335), axis_top(0.97)
    (0.1, 0.4, 1.0)
    """
    return next((step for step in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8) if value <= step * 0.98), 1.0)


def card(
    line_T: Sequence[tuple[float, float, float, float]],
    title: str,
    facts: Sequence[str],
    colours: Mapping[str, str],
    name: str,
    family: str = "system-ui, sans-serif",
    kind: str = "own",
) -> str:
    """Returns an SVG card of shares in [0, 1] over rounds. `line_T` holds (round, share, lower and upper end of
    the band), `name` labels the horizontal axis. `colours` has CSS values for surface, text, text_soft,
    text_faint, line_strong, grid and `kind`, the colour of the curve."""
    first, last = line_T[0][0], line_T[-1][0]
    upper = axis_top(max(place[3] for place in line_T))
    high, wide = HIGH - _TOP - _BOTTOM, WIDE - _LEFT - _RIGHT

    def x(round_: float) -> float:
        return _LEFT + wide * ((round_ - first) / (last - first) if last > first else 0.5)

    def y(share: float) -> float:
        return _TOP + high * (1 - min(max(share, 0.0), upper) / upper)

    def text(at: tuple[float, float], said: str, size: int, colour: str, more: str = "") -> str:
        style = f"font-family:{family};font-size:{size}px;fill:{colours[colour]};{more}"
        return f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" style="{style}">{escape(said)}</text>'

    parts = [f'<rect width="{WIDE}" height="{HIGH}" style="fill:{colours["surface"]}"/>']
    parts += [
        f'<path d="{_FISH}" transform="translate({at} {down}) scale({scale})" '
        f'style="fill:{colours["own"]};fill-opacity:{strength}"/>'
        for at, down, scale, strength in _SCHOOL
    ]
    parts.append(text((112, 50), title, 20, "text", "font-weight:600"))
    parts.append(text((112, 76), "  ·  ".join(facts), 15, "text_soft"))
    for mark in linear_ticks(0, upper, 5):
        line = f"stroke:{colours['grid' if mark else 'line_strong']}"
        parts.append(f'<path d="M{_LEFT} {y(mark):.1f}H{WIDE - _RIGHT}" style="{line}"/>')
        parts.append(text((_LEFT - 10, y(mark) + 4), f"{100 * mark:g} %", 13, "text_faint", "text-anchor:end"))
    for mark in integer_ticks(first, last, 8):
        if x(mark) < WIDE - _RIGHT - 70:
            where = (x(mark), HIGH - _BOTTOM + 24)
            parts.append(
                text(where, f"{mark:,}".replace(",", "\u2009"), 13, "text_faint", "text-anchor:middle")
            )
    parts.append(text((WIDE - _RIGHT, HIGH - _BOTTOM + 24), name, 13, "text_faint", "text-anchor:end"))
    there = [f"{x(place[0]):.1f},{y(place[3]):.1f}" for place in line_T]
    back = [f"{x(place[0]):.1f},{y(place[2]):.1f}" for place in reversed(line_T)]
    parts.append(f'<polygon points="{" ".join(there + back)}" style="fill:{colours[kind]};fill-opacity:.15"/>')
    points = " ".join(f"{x(place[0]):.1f},{y(place[1]):.1f}" for place in line_T)
    parts.append(f'<polyline points="{points}" style="fill:none;stroke:{colours[kind]};stroke-width:2.4"/>')
    if len(line_T) <= _DOTS:
        parts += [
            f'<circle cx="{x(place[0]):.1f}" cy="{y(place[1]):.1f}" r="{5 if place is line_T[-1] else 3.6}" '
            f'style="fill:{colours[kind]};stroke:{colours["surface"]};stroke-width:1.5"/>'
            for place in line_T
        ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" role="img" '
        f'aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )
