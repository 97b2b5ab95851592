"""How many informative groups a round should bring, from success rates alone: the counting model of the study.

It explains sharing as dynamic sampling from a larger pool, so agreement with the counts that are measured is a
sharp test. Node i answers I questions; each is informative with chance s(p), the mean over families.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import comb

from app.sapo.groups import informative_probability


def informative_share(rates: Iterable[float], g: int) -> float:
    """Mean of s(p) over families: the mean of s, not s of the mean, because s is concave.

    >>> round(informative_share([0.05, 0.5], 8), 3)
    0.664
    """
    shares = [informative_probability(p, g) for p in rates]
    return sum(shares) / len(shares) if shares else 0.0


def own_groups(own: int, share: float, attempts: int) -> float:
    """Expected informative own groups: I s. With dynamic sampling each place is drawn up to `attempts` times:
    I (1 - (1 - s)^attempts).

    >>> own_groups(8, 0.25, 1), own_groups(8, 0.5, 2)
    (2.0, 6.0)
    """
    return own * (1.0 - (1.0 - share) ** attempts)


def peer_groups(peer: int, offered: int, share: float) -> float:
    """Expected informative peer groups: E[min(J, Binomial(offered, s))].

    Paper setting, N = 8, 4/4, p = 0.05: 28 groups are offered and almost always hold four informative ones.

    >>> round(4 * informative_share([0.05], 8) + peer_groups(4, 28, informative_share([0.05], 8)), 2)
    5.34
    """
    return sum(
        min(peer, k) * comb(offered, k) * share**k * (1.0 - share) ** (offered - k) for k in range(offered + 1)
    )
