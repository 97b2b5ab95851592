"""Pairwise averaging of adapters, NoLoCo: now and then two nodes meet, and nobody waits for anybody else.

The outer step of NoLoCo (arXiv 2506.10911, with the constants of its authors' configurations), applied to
adapters: only nodes with the same base, the same rank and the same frozen A may meet, for then the mean of two
adapters' B is the adapter of the mean. Tensors may be anything with `+`, `-` and `*`.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec

from app.sapo import seeds


class Outer(msgspec.Struct, frozen=True, kw_only=True):
    """Constants of the outer step: momentum alpha, step beta, pull of the partners towards each other gamma."""

    alpha: float = 0.5
    beta: float = 0.7
    gamma: float = 0.7


def pairs(nodes: Sequence[int], number: int, seed: int) -> list[tuple[int, ...]]:
    """Who meets whom in outer step `number`: everybody computes the same from a public seed, nobody has to ask.
    With an odd number of nodes one stays alone.

    >>> pairs([0, 1, 2, 3, 4], 1, 0) == pairs([4, 3, 2, 1, 0], 1, 0)
    True
    >>> sorted(len(group) for group in pairs([0, 1, 2, 3, 4], 1, 0))
    [1, 2, 2]
    """
    order = sorted(nodes)
    Random(seeds.hashed("pairs", seed, number)).shuffle(order)
    return [tuple(sorted(order[first : first + 2])) for first in range(0, len(order), 2)]


def outer_step(
    slow_n: Sequence[Any], fast_n: Sequence[Any], momentum_n: Sequence[Any], outer: Outer | None = None
) -> tuple[list[Any], list[Any]]:
    """The partners' next slow weights and momenta, from their slow and fast weights (same length, a group's n
    nodes). With Delta_i = slow_i - fast_i and m the mean over the group:

        momentum_i <- alpha momentum_i - beta m(Delta) - gamma (slow_i - m(slow))
        slow_i <- slow_i + momentum_i

    The gamma term cancels in the group's sum: it moves partners towards each other and not their mean.

    >>> slow, momentum = outer_step([0.0, 4.0], [1.0, 5.0], [0.0, 0.0], Outer(alpha=0.5, beta=1.0, gamma=0.5))
    >>> slow, momentum
    ([2.0, 4.0], [2.0, 0.0])
    """
    outer = outer or Outer()
    delta_n = [slow - fast for slow, fast in zip(slow_n, fast_n, strict=True)]
    mean_delta, mean_slow = _mean(delta_n), _mean(slow_n)
    momenta = [
        momentum * outer.alpha - mean_delta * outer.beta - (slow - mean_slow) * outer.gamma
        for momentum, slow in zip(momentum_n, slow_n, strict=True)
    ]
    return [slow + momentum for slow, momentum in zip(slow_n, momenta, strict=True)], momenta


def _mean(values_n: Sequence[Any]) -> Any:
    total = values_n[0]
    for value in values_n[1:]:
        total = total + value
    return total * (1.0 / len(values_n))
