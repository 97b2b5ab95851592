"""Computes the weight of every token of a round's groups, by a recipe.

`weigh`: own groups get their advantages; peers' groups get theirs, times gates (likelihood, defences) and
without the part that would change the style of own answers; both are divided by the batch's denominator; the
peer part is scaled down to the own part's mass if the recipe caps it. Uninformative groups get zeros.
`deal_minibatches` then distributes the groups with weight over optimiser steps.

Left out: ratios to an old policy (the engine clips if a recipe wants it), and the learning rate, which is
separate from the weights because Adam would normalise it away.

The engine then minimises `-sum_t weight_t * log pi(token_t)` and knows nothing of rewards, groups or peers.

Shapes: `_P` groups, `_G` completions of one group, `_T` tokens of one completion. Log-probabilities are in nats
under the learner before the update, temperature 1.

How many optimiser steps a round's groups are worth: Adam moves the weights about as far whether a batch holds
one group with something to teach or five, so with one step a round peers' groups make that step less noisy and
do not take the model further. Here the size of a batch is fixed instead and more groups make more steps. The
later steps of a round are off their policy by the earlier ones: a few steps of a LoRA."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, sqrt
from random import Random
from typing import TypeVar

import msgspec

from app.sapo.advantages import group_normalised, mean_centred, shifted
from app.sapo.forms import MIN_PUSH_KEPT, FeatureDirections, Form, project_push
from app.sapo.groups import informative
from app.sapo.recipes import Recipe


class TrainGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A scored group in the learner's tokens. `lengths_G` includes the end token of finished completions.
    `logprobs_GT` is only needed for peer groups, if the recipe has gates."""

    rewards_G: tuple[int, ...]
    finished_G: tuple[bool, ...]
    lengths_G: tuple[int, ...]
    logprobs_GT: tuple[tuple[float, ...], ...] | None = None
    trusted_G: tuple[bool, ...] | None = None
    """For a peer's group: whether each right answer passed the defences (`app.sapo.defences`). Others get no
    weight, and a group without a passing right answer teaches nothing. None: no defences were applied."""
    apart_GF: tuple[Form, ...] | None = None
    """For a peer's group: each answer's form minus the own mean (`app.sapo.forms`), if peers may not change the
    form."""
    vouched: bool = False
    """For a peer's group: this node's owner wrote and confirmed its right answer, so the gates do not apply;
    the cap on peers' weight does."""

    @property
    def verdicts_G(self) -> tuple[int, ...]:
        """The rewards, with 0 for every unfinished completion."""
        return tuple(int(r and f) for r, f in zip(self.rewards_G, self.finished_G, strict=True))


WARM_UP = 5
"""Number of optimiser steps over which the learning rate rises linearly to its base value."""
MIN_RATE_SHARE = 0.25
"""A falling rate ends at this share of its base value, because learners still reach new levels after weeks."""


def learning_rate(base: float, updates: int, step: float, falls: int | None = None) -> float:
    """Returns the rate of a node's next optimiser step: `base`, warmed up over the first WARM_UP steps, times
    `step` (`WeighedGroups.step`); with `falls`, times 1 / sqrt(1 + updates / falls), but at least
    MIN_RATE_SHARE.

    >>> [learning_rate(1.0, updates, 1.0) for updates in (0, 3, 4, 400)], learning_rate(1.0, 400, 0.5)
    ([0.2, 0.8, 1.0, 1.0], 0.5)
    >>> [round(learning_rate(1.0, updates, 1.0, falls=40), 3) for updates in (10, 40, 120, 10_000)]
    [0.894, 0.707, 0.5, 0.25]
    """
    fallen = 1.0 if falls is None else max(MIN_RATE_SHARE, 1.0 / sqrt(1.0 + updates / falls))
    return base * step * fallen * min(1.0, (updates + 1) / WARM_UP)


Weights = tuple[tuple[float, ...], ...]
"""`weights_GT`: one weight per token of every completion of a group, in the group's order."""


def carries_weight(weights_GT: Weights) -> bool:
    """Whether any token of the group has a weight other than 0.

    >>> carries_weight(((0.0,), (0.0, 0.5))), carries_weight(((0.0,),))
    (True, False)
    """
    return any(map(any, weights_GT))


class WeighedGroups(msgspec.Struct, frozen=True, kw_only=True):
    """Final weights, in the order of the given groups: they include everything but the learning rate.

    `step` multiplies the learning rate (it is not in the weights, because Adam would normalise it away). The
    rest is for the history: the factor that the cap put on the peer part (1: none), sums of |weight| per
    source, and how many right and wrong peer answers the gates rejected.
    """

    own: tuple[Weights, ...]
    peer: tuple[Weights, ...]
    step: float
    peer_scale: float
    own_mass: float
    peer_mass: float
    gated_right: int
    gated_wrong: int
    right_P: tuple[tuple[int, int], ...] = ()
    """(accepted, rejected) right answers of each peer group."""
    steps: int = 1
    """Number of optimiser steps that the groups are distributed over (`deal_minibatches`). Weights are
    multiplied by it, so that in each step they are means over its groups."""


NO_GROUPS = WeighedGroups(
    own=(), peer=(), step=1.0, peer_scale=1.0, own_mass=0.0, peer_mass=0.0, gated_right=0, gated_wrong=0
)
"""The result if there are no groups."""


class WeighError(ValueError):
    """A group that the recipe cannot weigh: lengths differ, or required log-probabilities are missing."""


def weigh(
    recipe: Recipe,
    own: Sequence[TrainGroup],
    peer: Sequence[TrainGroup],
    own_logprob: float,
    signs_F: FeatureDirections = (),
) -> WeighedGroups:
    """Returns the weight of every token of a round's groups.

    `own_logprob` is l*, the running mean of own completions' mean token log-prob (see `running_logprob`);
    `faithful` ignores it. `signs_F`: direction in which own groups move the form (`forms.FormTrend`).
    Uninformative groups and unfinished completions get zeros; the latter still count as failures in their
    group's mean. Raises WeighError.
    """
    own_P, peer_P = [_Part(group) for group in own], [_Part(group) for group in peer]
    for part in own_P:
        part.spread(_advantages(recipe, part.verdicts_G))
    for part in peer_P:
        part.gates_G = _gates(recipe, part, own_logprob)
        verdicts_G = part.verdicts_G
        shifted_G = shifted(verdicts_G, recipe.delta) if recipe.delta else _advantages(recipe, verdicts_G)
        gated_G = [advantage * gate for advantage, gate in zip(shifted_G, part.gates_G, strict=True)]
        part.spread(part.levelled(gated_G, signs_F))
    share = _share(recipe, own_P, peer_P)
    for part in (*own_P, *peer_P):
        part.average(recipe.denominator, share)
    own_mass, peer_mass = _mass(own_P), _mass(peer_P)
    alone = own_mass == 0.0 and peer_mass > 0.0
    peer_scale = own_mass / peer_mass if recipe.cap_peers and not alone and peer_mass > own_mass else 1.0
    teaching = sum(carries_weight(part.weights_GT) for part in (*own_P, *peer_P))
    steps = minibatch_count(teaching, recipe.groups_per_step)
    right_P = tuple(part.judged(1) for part in peer_P)
    return WeighedGroups(
        own=tuple(part.times(steps) for part in own_P),
        peer=tuple(part.times(peer_scale * steps) for part in peer_P),
        step=recipe.lone_peer_step if alone else 1.0,
        peer_scale=peer_scale,
        own_mass=own_mass,
        peer_mass=peer_mass * peer_scale,
        gated_right=sum(kept_out for _, kept_out in right_P),
        gated_wrong=sum(part.judged(0)[1] for part in peer_P),
        right_P=right_P,
        steps=steps,
    )


def running_logprob(previous: float | None, means_S: Sequence[float], decay: float = 0.9) -> float | None:
    """Returns l*, the running mean over rounds of own completions' mean token log-prob (nats). Unchanged by a
    round without completions; None before the first.

    >>> running_logprob(None, [-1.0, -3.0]), running_logprob(-1.0, [-1.0, -3.0]), running_logprob(None, [])
    (-2.0, -1.1, None)
    """
    if not means_S:
        return previous
    now = sum(means_S) / len(means_S)
    return now if previous is None else decay * previous + (1.0 - decay) * now


def mean_logprob(logprobs_T: Sequence[float]) -> float:
    """Returns the mean over a completion's tokens; 0 for an empty one.

    >>> mean_logprob([-1.0, -3.0]), mean_logprob([])
    (-2.0, 0.0)
    """
    return sum(logprobs_T) / max(1, len(logprobs_T))


class _Part:
    """A group while it is being weighed. Raises WeighError if its fields have different lengths."""

    def __init__(self, group: TrainGroup) -> None:
        _check(group)
        self.group, self.verdicts_G = group, group.verdicts_G
        self.teaches = informative(self.verdicts_G)
        self.gates_G = [1.0] * len(self.verdicts_G)
        self.weights_GT: Weights = ()

    def spread(self, advantages_G: Sequence[float]) -> None:
        """Gives every token of a completion its advantage; zeros if the group is uninformative."""
        pairs = zip(advantages_G, self.group.finished_G, self.group.lengths_G, strict=True)
        self.weights_GT = tuple(
            (advantage if self.teaches and finished else 0.0,) * length for advantage, finished, length in pairs
        )

    def levelled(self, push_G: Sequence[float], signs_F: FeatureDirections) -> Sequence[float]:
        """Removes the part of a push that would change the form. An answer with less than MIN_PUSH_KEPT of its
        push left counts as rejected, and a group left without a right answer teaches nothing."""
        if self.group.apart_GF is None or not signs_F or not self.teaches:
            return push_G
        push_G = [push if done else 0.0 for push, done in zip(push_G, self.group.finished_G, strict=True)]
        now_G = project_push(push_G, self.group.apart_GF, signs_F)
        self.gates_G = [
            gate if abs(now) > MIN_PUSH_KEPT * abs(push) else 0.0
            for gate, now, push in zip(self.gates_G, now_G, push_G, strict=True)
        ]
        rows = zip(self.gates_G, self.verdicts_G, strict=True)
        return now_G if any(gate for gate, right in rows if right) else [0.0] * len(now_G)

    def average(self, denominator: str, share: float) -> None:
        """Divides by the batch denominator. `share`: a factor for all tokens ("token"), or the number of
        groups, whose completions and tokens are then averaged ("completion")."""
        if denominator == "token":
            self.weights_GT = self.times(share)
            return
        g = len(self.verdicts_G)
        self.weights_GT = tuple(
            tuple(weight / (share * g * length) for weight in weights_T)
            for length, weights_T in zip(self.group.lengths_G, self.weights_GT, strict=True)
        )

    def times(self, factor: float) -> Weights:
        return tuple(tuple(weight * factor for weight in weights_T) for weights_T in self.weights_GT)

    def judged(self, verdict: int) -> tuple[int, int]:
        """Returns (accepted, rejected): how many finished answers with this verdict passed the gates and how
        many did not."""
        rows = zip(self.gates_G, self.verdicts_G, self.group.finished_G, strict=True)
        gates = [gate for gate, right, finished in rows if right == verdict and finished]
        return sum(gate > 0.0 for gate in gates), sum(gate == 0.0 for gate in gates)


def _mass(parts_P: Sequence[_Part]) -> float:
    return sum(abs(weight) for part in parts_P for weights_T in part.weights_GT for weight in weights_T)


def _check(group: TrainGroup) -> None:
    g, logprobs_GT = len(group.rewards_G), group.logprobs_GT
    optional = [one for one in (logprobs_GT, group.trusted_G, group.apart_GF) if one is not None]
    if any(len(values_G) != g for values_G in (group.finished_G, group.lengths_G, *optional)):
        raise WeighError("A group's rewards, flags, lengths and log-probabilities must be equally many.")
    if logprobs_GT is not None and tuple(map(len, logprobs_GT)) != group.lengths_G:
        raise WeighError("A completion needs one log-probability for each of its tokens.")


def _advantages(recipe: Recipe, verdicts_G: Sequence[int]) -> list[float]:
    return (group_normalised if recipe.advantage == "group_normalised" else mean_centred)(verdicts_G)


def _gates(recipe: Recipe, part: _Part, own_logprob: float) -> list[float]:
    """Returns a factor in [0, 1] for each completion of a peer group, from its likelihood and the defences."""
    gates_G = part.gates_G
    if not part.teaches or part.group.vouched:
        return gates_G
    if recipe.floor is not None or recipe.negative_floor is not None:
        if part.group.logprobs_GT is None:
            raise WeighError(
                f"The recipe {recipe.name!r} needs the learner's log-probabilities of peer completions."
            )
        means_G = map(mean_logprob, part.group.logprobs_GT)
        gates_G = [
            _gate(recipe, right, mean - own_logprob)
            for right, mean in zip(part.verdicts_G, means_G, strict=True)
        ]
    if part.group.trusted_G is None:
        return gates_G
    gates_G = [
        gate if trusted or not right else 0.0
        for gate, trusted, right in zip(gates_G, part.group.trusted_G, part.verdicts_G, strict=True)
    ]
    anything = any(gate for gate, right in zip(gates_G, part.verdicts_G, strict=True) if right)
    return gates_G if anything else [0.0] * len(gates_G)


def _gate(recipe: Recipe, right: int, distance: float) -> float:
    """Returns the gate for `distance` = l_i - l* (nats). Right answers: 1 down to the floor, 0 below. Wrong
    ones: tapered, 0 below their floor. A NaN distance gives 0."""
    floor = recipe.floor if right else recipe.negative_floor
    if floor is None:
        return 1.0
    if not distance >= -floor:
        return 0.0
    return 1.0 if right else exp(min(distance, 0.0))


def _share(recipe: Recipe, own_P: Sequence[_Part], peer_P: Sequence[_Part]) -> float:
    """Returns the batch denominator. Unfinished completions are masked: their tokens do not count (as in
    TRL).
    """
    peers = [part for part in peer_P if part.teaches]
    if recipe.denominator == "completion":
        return max(1, len(own_P) + len(peers))
    tokens = sum(
        length
        for part in (*own_P, *peers)
        if part.teaches
        for length, finished in zip(part.group.lengths_G, part.group.finished_G, strict=True)
        if finished
    )
    return 1.0 / max(1, tokens)


Dealt = TypeVar("Dealt")


def minibatch_count(groups: int, per_step: int | None) -> int:
    """Returns the number of optimiser steps for `groups` groups with weight, about `per_step` groups in each;
    None: one step for all.

    >>> [minibatch_count(groups, 2) for groups in (0, 1, 2, 3, 4, 5, 8)], minibatch_count(8, None)
    ([0, 1, 1, 2, 2, 3, 4], 1)
    """
    if per_step is None:
        return min(1, groups)
    return max(min(1, groups), (groups + per_step // 2) // per_step)


def deal_minibatches(groups: Sequence[Dealt], steps: int, rng: Random) -> list[list[Dealt]]:
    """Distributes the groups over steps in random order, so that own groups and peers' mix. No step is empty.

    >>> deal_minibatches("ab", 1, Random(0)), deal_minibatches("", 2, Random(0))
    ([['a', 'b']], [])
    >>> [len(part) for part in deal_minibatches("abcde", 2, Random(0))]
    [3, 2]
    >>> [len(part) for part in deal_minibatches("ab", 3, Random(0))]
    [1, 1]
    """
    order = list(groups)
    if steps > 1:
        rng.shuffle(order)
    return [order[step::steps] for step in range(min(steps, len(order)))]
