"""Recipes: the choices by which a round's groups become weights, as one record each. `app.sapo.weighing` and
`app.sapo.mixing` follow them.

`faithful` is SAPO as published (arXiv 2509.08721, sections 3 to 5): GRPO on each group, peers' answers treated
as if this policy had written them, ratio 1. `default` keeps what peers discover and drops what makes
uncorrected peer text harmful: the baseline is shifted, implausible answers and those that carry more than an
answer are gated, failures taper off, and peers never outweigh own work; and every two groups that have
something to teach make an optimiser step of their own, at a rate that falls. It is the app's, and at a constant
rate, unless it says `+fall`, an arm's of the lab that says `@default`. Log-probabilities are in nats,
temperature 1.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from app.sapo.defences import CHECKS, Check


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
    sampler_cap: float = 2.0
    """Passed to the engine: where another program than the learner sampled own completions, their tokens'
    weights are multiplied by min(pi / mu, cap) (truncated importance sampling)."""
    choice: Literal["uniform", "peers first"] = "uniform"
    max_age: int | None = None
    """Maximum age of a peer group, in this node's rounds; None leaves that to the pool."""
    delta: float = 0.0
    """How far peers' baseline lies below their group's mean."""
    floor: float | None = None
    """A right peer answer counts only within this many nats (mean per token) below own text."""
    negative_floor: float | None = None
    """A wrong peer answer counts only within this many nats below own text, weighing min(1, e^(l_i - l*))."""
    checks: tuple[Check, ...] = ()
    """Further checks that a peer's right answer must pass (`app.sapo.defences.trusted`)."""
    keeps_form: bool = False
    """Whether peers' groups may not change what own answers look like (`app.sapo.forms.project_push`)."""
    vigil: bool = False
    """Whether a learner that gets worse with peers learns without them for a while (`app.learning.brake`)."""
    by_record: bool = False
    """Whether a peer whose right answers were often kept out is chosen less often (`app.sapo.defences.trust`).
    """
    cap_peers: bool = False
    """Whether the peer part is scaled down to the own part's sum of |weight|."""
    lone_peer_step: float = 1.0
    """Step size if all own groups are uninformative, so that only peers' groups teach."""
    groups_per_step: int | None = None
    """A round's groups that carry weight are dealt out to optimiser steps of about this many
    (`weighing.deal_minibatches`); None: one step takes them all, as in the paper."""

    falls: int | None = None
    """The learning rate falls as 1 / sqrt(1 + steps / falls) with a learner's optimiser steps, to a quarter of
    it (`weighing.learning_rate`); None: never."""

    @property
    def needs_peer_logprobs(self) -> bool:
        """Whether peer groups must come with log-probabilities under the learner."""
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
