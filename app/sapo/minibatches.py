"""Minibatches: how many optimiser steps a round's groups are worth.

Adam moves the weights about as far whether a batch holds one group with something to teach or five, so with one
step a round peers' groups make that step less noisy and do not take the model further. Here the size of a batch
is fixed instead and more groups make more steps. The later steps of a round are off their policy by the earlier
ones: a few steps of a LoRA.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

Part = TypeVar("Part")


def steps(groups: int, per_step: int | None) -> int:
    """Number of optimiser steps for this number of groups with a weight, about `per_step` groups in each; None:
    one step for all.

    >>> [steps(groups, 2) for groups in (0, 1, 2, 3, 4, 5, 8)], steps(8, None)
    ([0, 1, 1, 2, 2, 3, 4], 1)
    """
    if per_step is None:
        return min(1, groups)
    return max(min(1, groups), (groups + per_step // 2) // per_step)


def dealt(groups: Sequence[Part], steps: int, rng: Random) -> list[list[Part]]:
    """The groups of each step, in random order, so that own groups and peers' mix. No step is empty.

    >>> dealt("ab", 1, Random(0)), dealt("", 2, Random(0))
    ([['a', 'b']], [])
    >>> [len(part) for part in dealt("abcde", 2, Random(0))], [len(part) for part in dealt("ab", 3, Random(0))]
    ([3, 2], [1, 1])
    """
    order = list(groups)
    if steps > 1:
        rng.shuffle(order)
    return [order[step::steps] for step in range(min(steps, len(order)))]
