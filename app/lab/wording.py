"""Estimates in words: how shares, differences and gains are written, the same in every table and sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

from app.lab.statistics import Estimate

T = TypeVar("T")
NOTHING = "–"
"""The cell of a table where there is nothing to tell."""


def table(columns: Mapping[str, Callable[[T], str]], rows: Iterable[T]) -> str:
    """A Markdown table with its line end: each column's head and how its cell is written for a row.

    >>> table({"arm": str, "twice": lambda row: f"{2 * row}"}, [4])
    '| arm | twice |\\n|---|---|\\n| 4 | 8 |\\n'
    """
    written = [[*columns], *([cell(row) for cell in columns.values()] for row in rows)]
    head, *lines = [f"| {' | '.join(cells)} |\n" for cells in written]
    return "".join([head, "|---" * len(columns) + "|\n", *lines])


def number(value: float | None, form: str = ".2f", unit: str = "", times: float = 1.0) -> str:
    """A figure without an interval.

    >>> number(0.256, ".1f", " %", 100), number(None)
    ('25.6 %', '–')
    """
    return NOTHING if value is None else f"{times * value:{form}}{unit}"


percent = partial(number, form=".1f", unit=" %", times=100.0)
"""A share in [0, 1] without an interval."""


def spread(value: Estimate | None, form: str, unit: str = "") -> str:
    """A share in [0, 1] as per cent with its interval; the unit follows the mean.

    >>> spread(Estimate(mean=0.02, low=-0.01, high=0.05, t_low=None, t_high=None, seeds=3), "+.1f", " points")
    '+2.0 points [-1.0, +5.0]'
    """
    if value is None:
        return NOTHING
    return f"{100 * value.mean:{form}}{unit} [{100 * value.low:{form}}, {100 * value.high:{form}}]"


share = partial(spread, form=".1f", unit=" %")
"""A share in [0, 1]."""
points = partial(spread, form="+.1f")
"""A difference of shares."""
growth = partial(spread, form="+.0f", unit=" %")
"""A difference as a share of what it is a difference to."""
