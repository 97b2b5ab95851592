"""Means and intervals over seeds and nodes. `_S` seeds, `_N` nodes of one seed.

Nodes of a swarm learn from each other, so they are no independent runs: whole seeds are resampled first, then
nodes within them. With few seeds a bootstrap interval is too narrow, so the t interval over the seeds' means
stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, sqrt

import msgspec
import numpy as np

DRAWS = 10_000

_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""97.5 % points of Student's t for 1 to 15 degrees of freedom; the last serves for more, a little too wide."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A mean with its 95 % intervals. `t_low` and `t_high` need two seeds or more; with one seed the bootstrap
    speaks of its nodes alone."""

    mean: float
    low: float
    high: float
    t_low: float | None
    t_high: float | None
    seeds: int

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0

    @property
    def t_excludes_zero(self) -> bool | None:
        if self.t_low is None or self.t_high is None:
            return None
        return self.t_low > 0 or self.t_high < 0


def average(values: Sequence[float]) -> float:
    """The mean, 0 without values."""
    return sum(values) / len(values) if values else 0.0


def estimate(values_SN: Sequence[Sequence[float]]) -> Estimate:
    """Mean over seeds of the mean over nodes, with both intervals. The resampling has a fixed seed.

    Raises ValueError without values, or when seeds have different numbers of nodes.

    >>> estimate([[0.1, 0.3], [0.2, 0.4]]).mean
    0.25
    """
    values = np.asarray(values_SN, dtype=float)
    if values.ndim != 2 or not values.size:
        raise ValueError("An estimate needs at least one seed with one node, and equally many nodes in each.")
    count, nodes = values.shape
    rng = np.random.default_rng(0)
    seeds_drawn = rng.integers(count, size=(DRAWS, count, 1))
    nodes_drawn = rng.integers(nodes, size=(DRAWS, count, nodes))
    low, high = np.percentile(values[seeds_drawn, nodes_drawn].mean(axis=(1, 2)), [2.5, 97.5])
    t_low, t_high = t_interval(values.mean(axis=1).tolist())
    return Estimate(
        mean=float(values.mean()), low=float(low), high=float(high), t_low=t_low, t_high=t_high, seeds=count
    )


def paired(values_SN: Sequence[Sequence[float]], baseline_SN: Sequence[Sequence[float]]) -> Estimate:
    """The difference to a baseline, seed by seed and node by node: both asked the same questions.

    >>> round(paired([[0.3], [0.5]], [[0.1], [0.2]]).mean, 3)
    0.25
    """
    return estimate(
        [
            [a - b for a, b in zip(values_N, baseline_N, strict=True)]
            for values_N, baseline_N in zip(values_SN, baseline_SN, strict=True)
        ]
    )


def gain(values_SN: Sequence[Sequence[float]], baseline_SN: Sequence[Sequence[float]]) -> Estimate | None:
    """How much larger the mean is than a baseline's, as a share of it: mean / mean - 1, seeds and nodes drawn
    together. `t_low` and `t_high` come from the logarithms of the seeds' ratios. None where a baseline is zero.

    >>> round(gain([[0.3], [0.5]], [[0.1], [0.3]]).mean, 3)
    1.0
    """
    values, baseline = np.asarray(values_SN, dtype=float), np.asarray(baseline_SN, dtype=float)
    if not values.size or values.shape != baseline.shape or not (baseline.mean(axis=1) > 0).all():
        return None
    count, nodes = values.shape
    rng = np.random.default_rng(0)
    seeds_drawn = rng.integers(count, size=(DRAWS, count, 1))
    nodes_drawn = rng.integers(nodes, size=(DRAWS, count, nodes))
    below = baseline[seeds_drawn, nodes_drawn].mean(axis=(1, 2))
    drawn = values[seeds_drawn, nodes_drawn].mean(axis=(1, 2)) / np.maximum(below, 1e-12) - 1.0
    low, high = np.percentile(drawn, [2.5, 97.5])
    ratios = values.mean(axis=1) / baseline.mean(axis=1)
    t_low, t_high = t_interval(np.log(ratios).tolist()) if (ratios > 0).all() else (None, None)
    return Estimate(
        mean=float(values.mean() / baseline.mean() - 1.0),
        low=float(low),
        high=float(high),
        t_low=None if t_low is None else exp(t_low) - 1.0,
        t_high=None if t_high is None else exp(t_high) - 1.0,
        seeds=count,
    )


def t_interval(means_S: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """mean +- t sd / sqrt(S), Student's 95 % interval over seeds; (None, None) for a single one.

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


def area_until(at: Sequence[float], values: Sequence[float], end: float) -> float:
    """The mean height of a curve from its first point to `end`, which lies between its first and last.

    >>> area_until([0, 10, 30], [0.0, 0.2, 0.4], 20)
    0.175
    """
    inside = [k for k in range(len(at)) if at[k] <= end]
    last = inside[-1]
    xs, ys = [at[k] for k in inside], [values[k] for k in inside]
    if at[last] < end and last + 1 < len(at):
        share = (end - at[last]) / (at[last + 1] - at[last])
        xs.append(end)
        ys.append(values[last] + share * (values[last + 1] - values[last]))
    return area(xs, ys)


def area(rounds: Sequence[float], values: Sequence[float]) -> float:
    """Area under a curve by trapezes, divided by its length: the mean height over all rounds.

    >>> area([0, 10, 30], [0.0, 0.2, 0.2])
    0.16666666666666666
    """
    if len(rounds) < 2:
        return values[0]
    pieces = [(rounds[k + 1] - rounds[k]) * (values[k] + values[k + 1]) / 2 for k in range(len(rounds) - 1)]
    return sum(pieces) / (rounds[-1] - rounds[0])


def reached(at: Sequence[float], values: Sequence[float], height: float) -> float | None:
    """Where a curve first is as high as that, on straight lines between its points; None if it never is.

    >>> reached([0, 10, 30], [0.0, 0.2, 0.4], 0.3), reached([0, 10], [0.0, 0.2], 0.3)
    (20.0, None)
    """
    if values[0] >= height:
        return float(at[0])
    for k in range(1, len(values)):
        if values[k] >= height:
            share = (height - values[k - 1]) / (values[k] - values[k - 1])
            return round(at[k - 1] + share * (at[k] - at[k - 1]), 9)
    return None
