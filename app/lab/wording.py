"""Estimates in words: how shares, differences and gains are written, the same in every table and sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.lab.statistics import Estimate

NOTHING = "–"
"""Where there is nothing to tell."""


def table(head: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table, line by line; `head` is its first one.

    >>> table("| arm | seeds |", [("4/4", "3")])
    ['| arm | seeds |', '|---|---|', '| 4/4 | 3 |']
    """
    return [head, "|---" * (head.count("|") - 1) + "|", *(f"| {' | '.join(cells)} |" for cells in rows)]


def percent(share: float | None, digits: int = 1) -> str:
    """A share in [0, 1] that is known without an interval.

    >>> percent(0.256), percent(None)
    ('25.6 %', '–')
    """
    return NOTHING if share is None else f"{100 * share:.{digits}f} %"


def share(value: Estimate) -> str:
    """A share in [0, 1] as per cent with its interval.

    >>> share(Estimate(mean=0.2, low=0.15, high=0.25, t_low=None, t_high=None, seeds=3))
    '20.0 % [15.0, 25.0]'
    """
    return f"{100 * value.mean:.1f} % [{100 * value.low:.1f}, {100 * value.high:.1f}]"


def points(value: Estimate | None, unit: str = "") -> str:
    """A difference of shares in percentage points; `unit` follows the mean.

    >>> points(Estimate(mean=0.02, low=-0.01, high=0.05, t_low=None, t_high=None, seeds=3), " points")
    '+2.0 points [-1.0, +5.0]'
    """
    if value is None:
        return NOTHING
    return f"{100 * value.mean:+.1f}{unit} [{100 * value.low:+.1f}, {100 * value.high:+.1f}]"


def growth(value: Estimate | None) -> str:
    """A difference as a share of what it is a difference to.

    >>> growth(Estimate(mean=0.34, low=0.28, high=0.44, t_low=None, t_high=None, seeds=3))
    '+34 % [+28, +44]'
    """
    if value is None:
        return NOTHING
    return f"{100 * value.mean:+.0f} % [{100 * value.low:+.0f}, {100 * value.high:+.0f}]"
