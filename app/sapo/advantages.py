"""Advantages: how much better an answer is than the other answers to the question.

Pure functions of one group's rewards, `rewards_G`; the result is dimensionless and in the order of the
completions. A group with equal rewards carries no signal: the first two functions return zeros for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

EPSILON = 1e-8
"""Added to the standard deviation, as in GenRL, the code behind the SAPO paper (TRL adds 1e-4)."""


def mean_centred(rewards_G: Sequence[float]) -> list[float]:
    """`A_i = r_i - mean(r)`: the unbiased form of Dr. GRPO (arXiv 2503.20783, section 3). Sums to zero.

    >>> mean_centred([1, 0, 0, 0])
    [0.75, -0.25, -0.25, -0.25]
    """
    if not rewards_G:
        return []
    mean = sum(rewards_G) / len(rewards_G)
    return [reward - mean for reward in rewards_G]


def group_normalised(rewards_G: Sequence[float]) -> list[float]:
    """`A_i = (r_i - mean(r)) / (std(r) + EPSILON)`: GRPO (arXiv 2402.03300, section 4.1.2).

    The paper says "std" only. This is the sample deviation (divided by G - 1), as in GenRL and TRL. With one
    right of eight: mean = 1/8, std = sqrt(1/8) = 0.354, so the right one gets 2.475 and the others -0.354.

    >>> [round(a, 3) for a in group_normalised([1, 0, 0, 0, 0, 0, 0, 0])][:2]
    [2.475, -0.354]
    """
    centred_G = mean_centred(rewards_G)
    if len(centred_G) < 2:
        return centred_G
    deviation = sqrt(sum(a * a for a in centred_G) / (len(centred_G) - 1))
    return [a / (deviation + EPSILON) for a in centred_G]


def shifted(rewards_G: Sequence[float], delta: float) -> list[float]:
    """`A_i = r_i - (mean(r) - delta)` for answers that another policy wrote: AsymRE (arXiv 2506.20520).

    With the group's own mean as baseline, off-policy learning is at the point where the support collapses; a
    slightly lower baseline avoids that. With one right of eight and delta = 0.1: +0.975 and -0.025, close to
    imitating verified answers. A failure (reward 0) is never encouraged: where delta exceeds the mean, in
    groups of more than ten, its advantage is 0.

    >>> [round(a, 3) for a in shifted([1, 0, 0, 0, 0, 0, 0, 0], delta=0.1)][:2]
    [0.975, -0.025]
    """
    return [
        a + delta if reward > 0 else min(a + delta, 0.0)
        for reward, a in zip(rewards_G, mean_centred(rewards_G), strict=True)
    ]
