"""Recipes: how a round's groups become weights, each as one record of options. Applied by `app.sapo.weighing`
and `app.learning.choosing`.

`faithful` is SAPO as published (arXiv 2509.08721, sections 3 to 5): GRPO on each group, with peers' answers
treated as if this policy had written them (ratio 1). `default` keeps what peers discover and removes what makes
uncorrected peer text harmful: the baseline is shifted; implausible answers and those that carry more than an
answer are gated; failures are down-weighted; peers never outweigh own groups; and about two informative groups
make one optimiser step, at a falling learning rate. The app uses `default`; the lab's `@default` arms use it at
a constant rate unless they add `+fall`. Log-probabilities are in nats, temperature 1.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from app.sapo.defences import CHECKS, Check


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """The rules by which groups become weights. The fields' defaults are those of the paper."""

    name: str
    advantage: Literal["group_normalised", "mean_centred"] = "group_normalised"
    denominator: Literal["completion", "token"] = "completion"
    """`completion`: mean over groups, over a group's G completions, over a completion's tokens (GRPO, arXiv
    2402.03300, equation 3, which SAPO uses). All own groups count, including uninformative ones, as in the
    paper. `token`: one mean over the completion tokens of informative groups (DAPO, arXiv 2503.14476, equation
    8)."""
    clip: tuple[float, float] | None = (0.2, 0.28)
    """PPO clip range, passed to the engine; the sampler's log-probs of own completions are the old ones. Peer
    rows have no old log-probs: their ratio is 1."""
    sampler_cap: float = 2.0
    """Passed to the engine: if a different engine from the learner sampled own completions, their tokens'
    weights are multiplied by min(pi / mu, cap) (truncated importance sampling)."""
    choice: Literal["uniform", "peers first"] = "uniform"
    max_age: int | None = None
    """Maximum age of a peer group, in this node's rounds; None for no limit here."""
    delta: float = 0.0
    """Reward by which peers' baseline is below their group's mean."""
    floor: float | None = None
    """A right peer answer counts only if its mean log-prob per token is at most this many nats below that of
    own answers."""
    negative_floor: float | None = None
    """A wrong peer answer counts only within this many nats below own answers, with weight min(1, e^(l_i -
    l*))."""
    checks: tuple[Check, ...] = ()
    """Further checks for a peer's right answers (`app.sapo.defences.trusted_answers`)."""
    keeps_form: bool = False
    """Whether peers' groups are prevented from changing the style of own answers
    (`app.sapo.forms.project_push`)."""
    vigil: bool = False
    """Whether a learner that gets worse with peers trains without them for a while (`app.learning.brake`)."""
    by_record: bool = False
    """Whether a peer whose right answers were often rejected is chosen less often
    (`app.sapo.defences.trust`).
    """
    cap_peers: bool = False
    """Whether the peers' sum of |weight| is scaled down to that of own groups."""
    lone_peer_step: float = 1.0
    """Factor on the learning rate if all own groups are uninformative, so that only peers' groups teach."""
    groups_per_step: int | None = None
    """Groups with weight per optimiser step, on average (`weighing.deal_minibatches`); None: one step for all,
    as in the paper."""

    falls: int | None = None
    """The learning rate falls as 1 / sqrt(1 + steps / falls) with the learner's optimiser steps, down to a
    quarter (`weighing.learning_rate`); None: constant."""

    @property
    def needs_peer_logprobs(self) -> bool:
        """Whether the log-probabilities of peer groups under the learner are needed."""
        return (
            self.keeps_form
            or "tokens" in self.checks
            or self.floor is not None
            or self.negative_floor is not None
        )


RECIPES: dict[str, Recipe] = {
    "faithful": Recipe(name="faithful"),
    "default": Recipe(
        name="default",
        advantage="mean_centred",
        denominator="token",
        clip=None,
        choice="peers first",
        max_age=4,
        delta=0.1,
        floor=3.0,
        negative_floor=1.0,
        checks=CHECKS,
        keeps_form=True,
        vigil=True,
        by_record=True,
        cap_peers=True,
        lone_peer_step=0.5,
        groups_per_step=2,
        falls=100,
    ),
}
