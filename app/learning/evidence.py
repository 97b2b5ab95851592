"""Evidence: what some measurements say, how sure they are, and whether one is lower than another.

Everything that is concluded from figures is concluded here: whether own answers fell (`app.learning.brake`),
whether a curve collapsed (`app.learning.flat`), how near a family is (`app.learning.imitation`). One
observation is one question: answers to the same question are not independent, so their share counts once
(cluster-robust, as in Miller 2024, arXiv 2411.00640, section 2.2). Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist

import msgspec

SURE = 0.99
"""The one level of confidence: something is acted on, or told, when its odds are at least this."""
_NORMAL = NormalDist()


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Observations as their number, mean, and sum of squared distances from the mean (`m2`). The number is
    fractional once they have faded.

    >>> some = Evidence.of([0.0, 1.0, 0.5, 0.5])
    >>> some.n, some.mean, some.m2
    (4.0, 0.5, 0.5)
    >>> some.faded(0.5)
    Evidence(n=2.0, mean=0.5, m2=0.25)
    >>> Evidence.of([0.0, 1.0]) + Evidence.of([0.5, 0.5]) == some
    True
    """

    n: float = 0.0
    mean: float = 0.0
    m2: float = 0.0

    @staticmethod
    def of(values: Iterable[float]) -> Evidence:
        values = list(values)
        if not values:
            return Evidence()
        mean = math.fsum(values) / len(values)
        return Evidence(n=float(len(values)), mean=mean, m2=math.fsum((one - mean) ** 2 for one in values))

    def __add__(self, other: Evidence) -> Evidence:
        n = self.n + other.n
        if not n:
            return self
        apart = other.mean - self.mean
        mean = self.mean + apart * other.n / n
        return Evidence(n=n, mean=mean, m2=self.m2 + other.m2 + apart * apart * self.n * other.n / n)

    def faded(self, factor: float) -> Evidence:
        """The same evidence with `factor` of its weight."""
        return Evidence(n=self.n * factor, mean=self.mean, m2=self.m2 * factor)

    def error(self) -> float:
        """The mean's standard error, with two observations half of one from the mean added, so that two that
        are equal by chance are not taken for certain."""
        return math.sqrt(self.m2 + 0.5) / (self.n + 2.0)


def odds_lower(pairs: Sequence[tuple[Evidence, Evidence]], by: float = 0.0) -> float:
    """Returns the probability that measurements are lower now than before by more than `by`, under the normal
    approximation. `pairs`: (now, before) of each of several kinds, whose differences are averaged by the number
    of observations now; kinds without observations on either side are left out, and 0 is returned without any.

    >>> before, now = Evidence.of([0.5, 0.75, 0.25] * 20), Evidence.of([0.25, 0.5, 0.0] * 20)
    >>> round(odds_lower([(now, before)]), 4), round(odds_lower([(before, now)], by=-0.3), 2)
    (1.0, 0.9)
    >>> round(odds_lower([(now, before), (before, now)]), 2), odds_lower([(Evidence(), before)])
    (0.5, 0.0)
    """
    known = [(now, before) for now, before in pairs if now.n and before.n]
    if not known:
        return 0.0
    total = sum(now.n for now, _ in known)
    fall = sum(now.n / total * (before.mean - now.mean) for now, before in known)
    error = math.hypot(*(now.n / total * math.hypot(now.error(), before.error()) for now, before in known))
    return odds_above(fall, error, by)


def odds_above(found: float, error: float, by: float = 0.0) -> float:
    """Returns the probability that a figure measured with this standard error is truly above `by`, under the
    normal approximation.

    >>> round(odds_above(0.1, 0.05), 3), odds_above(0.1, 0.0, by=0.2)
    (0.977, 0.0)
    """
    return _NORMAL.cdf((found - by) / error) if error else float(found > by)
