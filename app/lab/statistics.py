"""Means and intervals over seeds and nodes, and their format in tables. `_S` seeds, `_N` nodes of one seed.

Nodes of a swarm learn from each other, so they are not independent runs: whole seeds are resampled first, then
nodes within them. With few seeds a bootstrap interval is too narrow, so the t interval over the seeds' means is
given too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import sqrt
from typing import TypeVar

import msgspec
import numpy as np

BOOTSTRAP_DRAWS = 10_000

_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""97.5 % points of Student's t for 1 to 15 degrees of freedom; the last is used for more, slightly too wide."""

Values = Sequence[Sequence[float]]
"""One number for each node of each seed."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A mean with its 95 % intervals. `t_low` and `t_high` need at least two seeds; with one seed the bootstrap
    interval covers only its nodes."""

    mean: float
    low: float
    high: float
    t_low: float | None
    t_high: float | None
    seeds: int


def average(values: Sequence[float]) -> float:
    """The mean; 0 without values."""
    return sum(values) / len(values) if values else 0.0


def estimate(values_SN: Values) -> Estimate:
    """Mean over seeds of the mean over nodes, with both intervals. The resampling has a fixed seed. Raises
    ValueError without values, or if seeds have different numbers of nodes.

    >>> estimate([[0.1, 0.3], [0.2, 0.4]]).mean
    0.25
    """
    values = np.asarray(values_SN, dtype=float)
    if values.ndim != 2 or not values.size:
        raise ValueError("An estimate needs at least one seed with one node, and equally many nodes in each.")
    count, nodes = values.shape
    rng = np.random.default_rng(0)
    seeds_drawn = rng.integers(count, size=(BOOTSTRAP_DRAWS, count, 1))
    nodes_drawn = rng.integers(nodes, size=(BOOTSTRAP_DRAWS, count, nodes))
    mean, drawn = values.mean(), values[seeds_drawn, nodes_drawn].mean(axis=(1, 2))
    t_low, t_high = t_interval(values.mean(axis=1).tolist())
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Estimate(mean=float(mean), low=float(low), high=float(high), t_low=t_low, t_high=t_high, seeds=count)


def paired(values_SN: Values, baseline_SN: Values) -> Estimate:
    """The difference to a baseline, paired by seed and node: both had the same questions.

    >>> round(paired([[0.3], [0.5]], [[0.1], [0.2]]).mean, 3)
    0.25
    """
    return estimate((np.asarray(values_SN, dtype=float) - np.asarray(baseline_SN, dtype=float)).tolist())


def t_interval(means_S: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """mean +- t sd / sqrt(S), Student's 95 % interval over seeds; (None, None) for a single seed.

    Means 1, 2, 3: sd 1, so 2 +- 4.303 / sqrt(3) = 2 +- 2.484.

    >>> [round(limit, 3) for limit in t_interval([1.0, 2.0, 3.0])]
    [-0.484, 4.484]
    """
    count = len(means_S)
    if count < 2:
        return None, None
    mean = sum(means_S) / count
    deviation = sqrt(sum((value - mean) ** 2 for value in means_S) / (count - 1))
    reach = _T[min(count - 2, len(_T) - 1)] * deviation / sqrt(count)
    return mean - reach, mean + reach


def mean_height(at: Sequence[float], values: Sequence[float]) -> float:
    """Area under a curve by the trapezoidal rule, divided by its length.

    >>> mean_height([0, 10, 30], [0.0, 0.2, 0.2]), mean_height([5], [0.3])
    (0.16666666666666666, 0.3)
    """
    if len(values) < 2:
        return values[0]
    return float(np.trapezoid(values, at)) / (at[-1] - at[0])


T = TypeVar("T")
EMPTY_CELL = "–"
"""The text of an empty table cell."""


def table(columns: Mapping[str, Callable[[T], str]], rows: Iterable[T]) -> str:
    """A Markdown table that ends with a line break. `columns` maps each head to the function that formats a
    row's cell.

    >>> table({"arm": str, "twice": lambda row: f"{2 * row}"}, [4])
    '| arm | twice |\\n|---|---|\\n| 4 | 8 |\\n'
    """
    written = [[*columns], *([cell(row) for cell in columns.values()] for row in rows)]
    head, *lines = [f"| {' | '.join(cells)} |\n" for cells in written]
    return "".join([head, "|---" * len(columns) + "|\n", *lines])


def number(value: float | None, form: str = ".2f", unit: str = "", times: float = 1.0) -> str:
    """Formats a figure without an interval.

    >>> number(0.256, ".1f", " %", 100), number(None)
    ('25.6 %', '–')
    """
    return EMPTY_CELL if value is None else f"{times * value:{form}}{unit}"


percent = partial(number, form=".1f", unit=" %", times=100.0)
"""Formats a share in [0, 1] as per cent without an interval."""


def format_interval(value: Estimate | None, form: str, unit: str = "") -> str:
    """Formats a share in [0, 1] as per cent with its interval; the unit follows the mean.

    >>> found = Estimate(mean=0.02, low=-0.01, high=0.05, t_low=None, t_high=None, seeds=3)
    >>> format_interval(found, "+.1f", " points")
    '+2.0 points [-1.0, +5.0]'
    """
    if value is None:
        return EMPTY_CELL
    return f"{100 * value.mean:{form}}{unit} [{100 * value.low:{form}}, {100 * value.high:{form}}]"


share = partial(format_interval, form=".1f", unit=" %")
"""Formats a share in [0, 1] with its interval."""
points = partial(format_interval, form="+.1f")
"""Formats a difference of shares, in percentage points."""
