"""Recipes: from rewards to the weight of every token.

A recipe is a frozen record of choices; `weigh` turns own and peer groups into final weights by it. The engine
then minimises `-sum_t weight_t * log pi(token_t)` and knows nothing of rewards, groups or peers.

`faithful` is SAPO as published (arXiv 2509.08721, sections 3 to 5): GRPO on each group, peers' answers treated
as if this policy had written them, ratio 1. `default` keeps what peers discover and drops what makes
uncorrected peer text harmful: the baseline is shifted, implausible answers and those that carry more than an
answer are gated, failures taper off, and peers never outweigh own work; and every two groups that have
something to teach make an optimiser step of their own. Shapes: `_G` completions of one group, `_T` tokens of
one completion. Log-probabilities are in nats, temperature 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Literal

import msgspec

from app.sapo import minibatches
from app.sapo.advantages import group_normalised, mean_centred, shifted
from app.sapo.defences import Check
from app.sapo.groups import informative


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """How groups become weights. The defaults of the fields are those of the paper."""

    name: str
    advantage: Literal["group_normalised", "mean_centred"] = "group_normalised"
    denominator: Literal["completion", "token"] = "completion"
    """`completion`: mean over groups, over a group's G completions, over a completion's tokens (GRPO, arXiv
    2402.03300, equation 3, which SAPO names as its update). All own groups count, also uninformative ones, as
    in the paper. `token`: one mean over the completion tokens of informative groups (DAPO, arXiv 2503.14476,
    equation 8)."""
    clip: tuple[float, float] | None = (0.2, 0.28)
    """Passed to the engine, with the sampler's log-probs of own completions as the old ones. Peer rows carry
    none: their ratio is 1."""
    choice: Literal["uniform", "peers first"] = "uniform"
    max_age: int | None = None
    """Oldest peer group taken, in this node's rounds; None leaves that to the pool."""
    crowd: int = 4
    """With more peers than this in the pool, no peer gives more than a quarter of J (`peers first` only)."""
    importance_cap: float | None = None
    """Token weights of own completions from another sampler: min(pi / mu, cap). None: no correction."""
    delta: float = 0.0
    """Peers' baseline lies this far below their group's mean."""
    floor: float | None = None
    """A right peer answer counts only within this many nats (mean per token) below own text."""
    negative_floor: float | None = None
    """A wrong peer answer counts only within this many nats below own text, weighing min(1, e^(l_i - l*))."""
    cautious: float | None = None
    """gamma (there 0.1) of LUFFY's token weight 4 gamma pi / (pi + gamma)^2 on right peer answers (arXiv
    2504.14945)."""
    checks: tuple[Check, ...] = ()
    """What a peer's right answer must pass beside the floor (`app.sapo.defences.trusted`)."""
    by_record: bool = False
    """Whether a peer is chosen less whose right answers were often kept out (`app.sapo.defences.trust`)."""
    cap_peers: bool = False
    """Whether the peer part is scaled down to the own part's sum of |weight|."""
    lone_peer_step: float = 1.0
    """Step size when all own groups are uninformative and peers' stand alone."""
    groups_per_step: int | None = None
    """A round's groups that weigh something are dealt out to optimiser steps of about this many
    (`sapo.minibatches`); None: one step takes them all, as in the paper."""
    adaptive: bool = False
    """Whether a node moves I and J by its own informative share, with a brake (`sapo.adaptive`)."""
    frontier: bool = False
    """Whether J questions of peers are answered again instead of learned from (`sapo.frontier`)."""

    @property
    def needs_peer_logprobs(self) -> bool:
        """Whether peer groups must come with log-probabilities under the learner."""
        gates = (self.floor, self.negative_floor, self.cautious)
        return "tokens" in self.checks or any(gate is not None for gate in gates)


RECIPES: dict[str, Recipe] = {
    "faithful": Recipe(name="faithful"),
    "default": Recipe(
        name="default",
        advantage="mean_centred",
        denominator="token",
        clip=None,
        choice="peers first",
        max_age=4,
        importance_cap=2.0,
        delta=0.1,
        floor=3.0,
        negative_floor=1.0,
        checks=("tokens", "form", "length"),
        by_record=True,
        cap_peers=True,
        lone_peer_step=0.5,
        groups_per_step=2,
    ),
}

CANDIDATES: dict[str, Recipe] = {
    "adaptive": msgspec.structs.replace(RECIPES["default"], name="adaptive", adaptive=True),
    "frontier": msgspec.structs.replace(RECIPES["default"], name="frontier", frontier=True),
}
"""Recipes that only the lab knows: they become the app's when they are measured to be better."""


class TrainGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A scored group as tokens of the learner. `lengths_G` counts the end token of finished completions.

    `mean_logprob_G` is the mean per token of each completion under the learner before the update; only peer
    groups under a gating recipe need it. `logprobs_GT` are the same per token, `sampler_logprobs_GT` those of
    the engine that sampled, where it is not the learner.
    """

    rewards_G: tuple[int, ...]
    finished_G: tuple[bool, ...]
    lengths_G: tuple[int, ...]
    mean_logprob_G: tuple[float, ...] | None = None
    logprobs_GT: tuple[tuple[float, ...], ...] | None = None
    sampler_logprobs_GT: tuple[tuple[float, ...], ...] | None = None
    trusted_G: tuple[bool, ...] | None = None
    """Of a peer's group: whether a right answer passed the defences (`app.sapo.defences`). One that did not
    weighs nothing, and a group without any that did teaches nothing at all. None: there were no defences."""

    @property
    def verdicts_G(self) -> tuple[int, ...]:
        """Rewards with every unfinished completion a failure."""
        return tuple(int(r and f) for r, f in zip(self.rewards_G, self.finished_G, strict=True))


WARM_UP = 5
"""Optimiser steps over which the learning rate rises to its constant value."""


def learning_rate(base: float, updates: int, step: float) -> float:
    """Rate of a node's next optimiser step: `base`, warmed up over its first WARM_UP, times `Weighed.step`.

    >>> [learning_rate(1.0, updates, 1.0) for updates in (0, 3, 4, 400)], learning_rate(1.0, 400, 0.5)
    ([0.2, 0.8, 1.0, 1.0], 0.5)
    """
    return base * step * min(1.0, (updates + 1) / WARM_UP)


Weights = tuple[tuple[float, ...], ...]
"""`weights_GT`: one weight per token of every completion of a group, in the group's order."""


class Weighed(msgspec.Struct, frozen=True, kw_only=True):
    """Final weights, in the order of the groups given: everything but the learning rate is in them.

    `step` multiplies the learning rate (it is not in the weights, because Adam would normalise it away). The
    rest is for the history: the share of the peer part that the cap left (1: all of it), sums of |weight| per
    source, and how many right and wrong peer answers the floors kept out.
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
    """Of each peer group's right answers, how many were taken and how many kept out."""
    steps: int = 1
    """Optimiser steps the groups are to be dealt out to (`sapo.minibatches`). Weights are multiplied by it,
    so that in each step they are means over its own groups."""


class WeighError(ValueError):
    """A group that the recipe cannot weigh: lengths differ, or log-probabilities it needs are missing."""


def weigh(recipe: Recipe, own: Sequence[TrainGroup], peer: Sequence[TrainGroup], own_logprob: float) -> Weighed:
    """The weight of every token of a round's groups.

    `own_logprob` is l*, the running mean of own completions' mean token log-prob (see `running_logprob`);
    `faithful` ignores it. Uninformative groups and unfinished completions get zeros; the latter still count as
    failures in their group's mean. Raises WeighError.
    """
    for group in (*own, *peer):
        _check(group)
    gates = [_gates(recipe, group, own_logprob) for group in peer]
    own_weights = [_scaled(group, _own_advantages(recipe, group), _importance(recipe, group)) for group in own]
    peer_weights = [
        _scaled(group, _gated(_peer_advantages(recipe, group), gates_G), _caution(recipe, group))
        for group, gates_G in zip(peer, gates, strict=True)
    ]
    own_weights, peer_weights = _averaged(recipe, own, own_weights, peer, peer_weights)
    own_mass, peer_mass = _mass(own_weights), _mass(peer_weights)
    alone = own_mass == 0.0 and peer_mass > 0.0
    peer_scale = own_mass / peer_mass if recipe.cap_peers and not alone and peer_mass > own_mass else 1.0
    kept_out = [
        verdict
        for group, gates_G in zip(peer, gates, strict=True)
        for verdict, finished, gate in zip(group.verdicts_G, group.finished_G, gates_G, strict=True)
        if finished and gate == 0.0
    ]
    steps = minibatches.steps(_count(own_weights) + _count(peer_weights), recipe.groups_per_step)
    return Weighed(
        own=tuple(_times(weights_GT, steps) for weights_GT in own_weights),
        peer=tuple(_times(weights_GT, peer_scale * steps) for weights_GT in peer_weights),
        step=recipe.lone_peer_step if alone else 1.0,
        peer_scale=peer_scale,
        own_mass=own_mass,
        peer_mass=peer_mass * peer_scale,
        gated_right=sum(kept_out),
        gated_wrong=len(kept_out) - sum(kept_out),
        right_P=tuple(_right(group, gates_G) for group, gates_G in zip(peer, gates, strict=True)),
        steps=steps,
    )


def running_logprob(previous: float | None, own: Sequence[TrainGroup], decay: float = 0.9) -> float | None:
    """l*: the running mean, over rounds, of the mean token log-prob of own completions (nats).

    Groups without log-probs are skipped; without any the previous value stays, None before the first.

    >>> group = TrainGroup(
    ...     rewards_G=(1, 0), finished_G=(True, True), lengths_G=(2, 2), mean_logprob_G=(-1.0, -3.0)
    ... )
    >>> running_logprob(None, [group]), running_logprob(-1.0, [group])
    (-2.0, -1.1)
    """
    means = [mean for group in own for mean in _means(group) or ()]
    if not means:
        return previous
    now = sum(means) / len(means)
    return now if previous is None else decay * previous + (1.0 - decay) * now


def questions_to_add(asked: int, drawn: int, informative_own: int) -> int:
    """How many more questions a round may draw, when time allows: if fewer than half of the `asked` own groups
    turned out informative, up to twice as many questions are drawn in all.

    >>> questions_to_add(4, 4, 1), questions_to_add(4, 4, 2), questions_to_add(4, 8, 0)
    (4, 0, 0)
    """
    return max(0, 2 * asked - drawn) if 2 * informative_own < asked else 0


def _check(group: TrainGroup) -> None:
    g = len(group.rewards_G)
    per_token = [p for p in (group.logprobs_GT, group.sampler_logprobs_GT) if p is not None]
    per_completion = [group.finished_G, group.lengths_G, *per_token]
    if group.trusted_G is not None:
        per_completion.append(group.trusted_G)
    if group.mean_logprob_G is not None:
        per_completion.append(group.mean_logprob_G)
    if any(len(values_G) != g for values_G in per_completion):
        raise WeighError("A group's rewards, flags, lengths and log-probabilities must be equally many.")
    if any(tuple(map(len, values_GT)) != group.lengths_G for values_GT in per_token):
        raise WeighError("A completion needs one log-probability for each of its tokens.")


def _own_advantages(recipe: Recipe, group: TrainGroup) -> list[float]:
    return (group_normalised if recipe.advantage == "group_normalised" else mean_centred)(group.verdicts_G)


def _peer_advantages(recipe: Recipe, group: TrainGroup) -> list[float]:
    return shifted(group.verdicts_G, recipe.delta) if recipe.delta else _own_advantages(recipe, group)


def _importance(recipe: Recipe, group: TrainGroup) -> list[list[float]]:
    """min(pi / mu, cap) per token, ones where the learner itself sampled: truncated importance sampling."""
    if recipe.importance_cap is None or group.sampler_logprobs_GT is None:
        return [[1.0] * length for length in group.lengths_G]
    if group.logprobs_GT is None:
        raise WeighError("A group from another sampler needs the learner's log-probabilities too.")
    cap = recipe.importance_cap
    return [
        [min(cap, exp(min(pi - mu, 50.0))) for pi, mu in zip(pi_T, mu_T, strict=True)]
        for pi_T, mu_T in zip(group.logprobs_GT, group.sampler_logprobs_GT, strict=True)
    ]


def _gates(recipe: Recipe, group: TrainGroup, own_logprob: float) -> list[float]:
    """How far each completion of a peer group is trusted, in [0, 1]: by its likelihood and by the defences."""
    gates_G = _likely(recipe, group, own_logprob)
    if group.trusted_G is None or not informative(group.verdicts_G):
        return gates_G
    gates_G = [
        gate if trusted or not right else 0.0
        for gate, trusted, right in zip(gates_G, group.trusted_G, group.verdicts_G, strict=True)
    ]
    anything = any(gate for gate, right in zip(gates_G, group.verdicts_G, strict=True) if right)
    return gates_G if anything else [0.0] * len(gates_G)


def _right(group: TrainGroup, gates_G: list[float]) -> tuple[int, int]:
    """Right answers taken, and kept out."""
    gates = [gate for gate, right in zip(gates_G, group.verdicts_G, strict=True) if right]
    return sum(gate > 0.0 for gate in gates), sum(gate == 0.0 for gate in gates)


def _likely(recipe: Recipe, group: TrainGroup, own_logprob: float) -> list[float]:
    """The gates that go by an answer's mean log-prob, each in [0, 1]. Ones where none are needed."""
    if (recipe.floor is None and recipe.negative_floor is None) or not informative(group.verdicts_G):
        return [1.0] * len(group.rewards_G)
    means_G = _means(group)
    if means_G is None:
        raise WeighError(
            f"The recipe {recipe.name!r} needs the learner's log-probabilities of peer completions."
        )
    return [
        _gate(recipe, right, mean - own_logprob) for right, mean in zip(group.verdicts_G, means_G, strict=True)
    ]


def _gate(recipe: Recipe, right: int, distance: float) -> float:
    """`distance` = l_i - l*, nats. Right: all or nothing at the floor. Wrong: tapered, nothing below its floor.
    A distance that is not a number passes neither."""
    floor = recipe.floor if right else recipe.negative_floor
    if floor is None:
        return 1.0
    if not distance >= -floor:
        return 0.0
    return 1.0 if right else exp(min(distance, 0.0))


def _gated(advantages_G: list[float], gates_G: list[float]) -> list[float]:
    return [advantage * gate for advantage, gate in zip(advantages_G, gates_G, strict=True)]


def _caution(recipe: Recipe, group: TrainGroup) -> list[list[float]]:
    """LUFFY's factor per token of right answers, at most 1 (at pi = gamma): the absurd teaches nothing."""
    gamma = recipe.cautious
    if gamma is None or not informative(group.verdicts_G):
        return [[1.0] * length for length in group.lengths_G]
    if group.logprobs_GT is None:
        raise WeighError(f"The recipe {recipe.name!r} needs peer log-probabilities token by token.")
    return [
        [4 * gamma * exp(lp) / (exp(lp) + gamma) ** 2 if right else 1.0 for lp in logprobs_T]
        for right, logprobs_T in zip(group.verdicts_G, group.logprobs_GT, strict=True)
    ]


def _means(group: TrainGroup) -> tuple[float, ...] | None:
    if group.mean_logprob_G is not None or group.logprobs_GT is None:
        return group.mean_logprob_G
    return tuple(sum(logprobs_T) / max(1, len(logprobs_T)) for logprobs_T in group.logprobs_GT)


def _scaled(group: TrainGroup, advantages_G: list[float], factors_GT: list[list[float]]) -> Weights:
    """advantage x factor per token; zeros for uninformative groups and unfinished completions."""
    keep = informative(group.verdicts_G)
    return tuple(
        tuple(advantage * factor if keep and finished else 0.0 for factor in factors_T)
        for advantage, finished, factors_T in zip(advantages_G, group.finished_G, factors_GT, strict=True)
    )


def _averaged(
    recipe: Recipe,
    own: Sequence[TrainGroup],
    own_weights: Sequence[Weights],
    peer: Sequence[TrainGroup],
    peer_weights: Sequence[Weights],
) -> tuple[list[Weights], list[Weights]]:
    """Divides by the batch denominator. Unfinished completions are masked: their tokens do not count (TRL)."""
    informative_peer = [group for group in peer if informative(group.verdicts_G)]
    if recipe.denominator == "token":
        batch = [group for group in own if informative(group.verdicts_G)] + informative_peer
        tokens = sum(
            length
            for g in batch
            for length, finished in zip(g.lengths_G, g.finished_G, strict=True)
            if finished
        )
        share = 1.0 / max(1, tokens)
        return [_times(w, share) for w in own_weights], [_times(w, share) for w in peer_weights]
    groups = max(1, len(own) + len(informative_peer))
    return (
        [_per_completion(group, w, groups) for group, w in zip(own, own_weights, strict=True)],
        [_per_completion(group, w, groups) for group, w in zip(peer, peer_weights, strict=True)],
    )


def _per_completion(group: TrainGroup, weights_GT: Weights, groups: int) -> Weights:
    g = len(group.rewards_G)
    return tuple(
        tuple(weight / (groups * g * length) for weight in weights_T)
        for length, weights_T in zip(group.lengths_G, weights_GT, strict=True)
    )


def _times(weights_GT: Weights, factor: float) -> Weights:
    return tuple(tuple(weight * factor for weight in weights_T) for weights_T in weights_GT)


def _count(weights: Sequence[Weights]) -> int:
    """Groups with any weight."""
    return sum(any(any(weights_T) for weights_T in weights_GT) for weights_GT in weights)


def _mass(weights: Sequence[Weights]) -> float:
    return sum(abs(weight) for weights_GT in weights for weights_T in weights_GT for weight in weights_T)
