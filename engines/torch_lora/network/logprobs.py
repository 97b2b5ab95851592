"""Log-probabilities and the weighted loss over completion positions, in chunks of rows.

With a vocabulary of 151,936, the logits of 16,384 tokens take 10 GB in fp32; a chunk takes 64 MB. The head is
frozen and the loss of a token depends on its own log-probability only, so the gradient of the hidden states is
computed in the same pass as the loss, and logits are never kept or computed twice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import Function

from engines.batches import logit_chunks


@dataclass(frozen=True)
class States:
    """The states that predict the completions' tokens: hidden states (C, d) with the head (V, d), or with
    `head` None the logits (C, V) themselves, for architectures that do more than a matrix product at the
    end."""

    hidden_Cd: torch.Tensor
    head_Vd: torch.Tensor | None

    @property
    def vocabulary(self) -> int:
        return self.hidden_Cd.shape[1] if self.head_Vd is None else self.head_Vd.shape[0]


@dataclass(frozen=True)
class TokenTargets:
    """Per completion token: id, weight, log-probability before the step, and whether that was given.
    `sampler_C` are the log-probabilities of another program that sampled, NaN where the learner itself did."""

    tokens_C: torch.Tensor
    weights_C: torch.Tensor
    old_C: torch.Tensor
    has_old_C: torch.Tensor
    sampler_C: torch.Tensor | None = None
    sampler_cap: float = math.inf

    def part(self, rows: slice) -> TokenTargets:
        sampler = None if self.sampler_C is None else self.sampler_C[rows]
        return TokenTargets(
            self.tokens_C[rows],
            self.weights_C[rows],
            self.old_C[rows],
            self.has_old_C[rows],
            sampler,
            self.sampler_cap,
        )


def importance_corrected(
    weights_C: torch.Tensor, logp_C: torch.Tensor, sampler_C: torch.Tensor | None, cap: float
) -> torch.Tensor:
    """Returns the weights times min(exp(logp - sampler's), cap); weights of the learner's own tokens stay
    unchanged.

    >>> probabilities = torch.tensor([0.5, 0.5, 0.5])
    >>> sampler = torch.tensor([0.8, 0.1, math.nan])
    >>> importance_corrected(torch.ones(3), probabilities.log(), sampler.log(), 2.0).tolist()
    [0.625, 2.0, 1.0]
    """
    if sampler_C is None:
        return weights_C
    ratio = (logp_C - sampler_C).exp().clamp(max=cap)
    return torch.where(sampler_C.isnan(), weights_C, weights_C * ratio)


def mismatch(logp_C: torch.Tensor, sampler_C: torch.Tensor | None, cap: float) -> torch.Tensor:
    """Returns the sum of |logp - sampler's| in nats, the number of tokens above the cap, and the number of
    tokens counted, (3,) fp64.

    >>> sampler = torch.tensor([0.8, 0.1, math.nan])
    >>> [round(x, 3) for x in mismatch(torch.tensor([0.5, 0.5, 0.5]).log(), sampler.log(), 2.0).tolist()]
    [2.079, 1.0, 2.0]
    """
    if sampler_C is None:
        return torch.zeros(3, dtype=torch.float64, device=logp_C.device)
    apart = (logp_C - sampler_C)[~sampler_C.isnan()].double()
    capped = (apart > math.log(cap)).sum()
    return torch.stack([apart.abs().sum(), capped.double(), apart.new_tensor(len(apart))])


def token_loss(
    logp_C: torch.Tensor, targets: TokenTargets, clip: tuple[float, float] | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the loss of each token and its derivative with respect to the log-probability, both fp32 (C,).

    Weights go through `importance_corrected` first. Without an old log-probability the loss is `-w * logp`.
    With one it is PPO's `-min(r * w, clip(r) * w)`, r = exp(logp - old), clipped to [1 - below, 1 + above]
    (Schulman et al. 2017, eq. 7; two bounds as in DAPO)."""
    weights = importance_corrected(targets.weights_C, logp_C, targets.sampler_C, targets.sampler_cap)
    plain, slope = -weights * logp_C, -weights
    if not bool(targets.has_old_C.any()):
        return plain, slope
    ratio = (logp_C - targets.old_C).exp()
    loss, derivative = -weights * ratio, -weights * ratio
    if clip is not None:
        bounded = -weights * ratio.clamp(1 - clip[0], 1 + clip[1])
        outside = bounded > loss
        loss = torch.where(outside, bounded, loss)
        derivative = torch.where(outside, torch.zeros_like(derivative), derivative)
    return torch.where(targets.has_old_C, loss, plain), torch.where(targets.has_old_C, derivative, slope)


class _WeightedLoss(Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden_Cd: torch.Tensor,
        head_Vd: torch.Tensor | None,
        targets: TokenTargets,
        clip: tuple[float, float] | None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        total = torch.zeros((), device=hidden_Cd.device)
        logps_C = torch.empty(hidden_Cd.shape[0], device=hidden_Cd.device)
        apart = mismatch(total[None], None, math.inf)
        gradient = torch.empty_like(hidden_Cd)
        vocabulary = States(hidden_Cd, head_Vd).vocabulary
        for rows in logit_chunks(hidden_Cd.shape[0], vocabulary):
            part = targets.part(rows)
            logits = _logits(hidden_Cd[rows], head_Vd)
            logp, lse = _logp(logits, part.tokens_C)
            loss, derivative = token_loss(logp, part, clip)
            total += loss.sum()
            logps_C[rows] = logp.to(logps_C.dtype)
            apart += mismatch(logp, part.sampler_C, part.sampler_cap)
            # d logp / d logits = onehot - softmax, times this token's derivative
            logits = logits.sub_(lse[:, None]).exp_().mul_(-derivative[:, None])
            logits.scatter_add_(1, part.tokens_C[:, None], derivative[:, None])
            flowing = logits.to(hidden_Cd.dtype)
            gradient[rows] = flowing if head_Vd is None else flowing @ head_Vd
        ctx.save_for_backward(gradient)
        ctx.mark_non_differentiable(apart, logps_C)
        return total, apart, logps_C

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (gradient,) = ctx.saved_tensors
        return gradient * grads[0], None, None, None


def weighted_loss(
    states: States, targets: TokenTargets, clip: tuple[float, float] | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the sum of `token_loss` over all tokens, differentiable with respect to the hidden states,
    `mismatch`, and the log-probability of each token, (C,)."""
    out: tuple[torch.Tensor, torch.Tensor, torch.Tensor] = _WeightedLoss.apply(  # type: ignore[no-untyped-call]
        states.hidden_Cd, states.head_Vd, targets, clip
    )
    return out


@torch.no_grad()
def logprobs(states: States, tokens_C: torch.Tensor) -> torch.Tensor:
    """Returns the log-probability of each token in nats, (C,) fp32."""
    out = torch.empty(tokens_C.shape[0], device=tokens_C.device)
    for rows in logit_chunks(tokens_C.shape[0], states.vocabulary):
        out[rows] = _logp(_logits(states.hidden_Cd[rows], states.head_Vd), tokens_C[rows])[0]
    return out


def _logits(hidden: torch.Tensor, head_Vd: torch.Tensor | None) -> torch.Tensor:
    if head_Vd is None:
        return hidden.detach().clone().float()
    logits = hidden @ head_Vd.t()
    return logits if logits.dtype == torch.float64 else logits.float()


def _logp(logits: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    lse = logits.logsumexp(-1)
    return logits.gather(-1, tokens[:, None])[:, 0] - lse, lse
