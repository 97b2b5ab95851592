"""Log-probabilities and the weighted loss over completion positions, in chunks of rows.

The same formulas as engines.torch_lora.network.logprobs. The head is frozen and the loss of a token depends on
its own log-probability alone, so the gradient of the hidden states is formed beside the loss, a chunk of logits
at a time, and automatic differentiation never sees any logits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import mlx.core as mx
import numpy as np

from engines.contract import Row

CHUNK_VALUES = 2**24
"""Logits of one chunk: 64 MB in fp32."""


@dataclass(frozen=True)
class Targets:
    """Per predicted token: id, weight, and log-probabilities before the step and of the sampler, NaN where not
    given."""

    tokens_C: mx.array
    weights_C: mx.array
    old_C: mx.array
    sampler_C: mx.array
    sampler_cap: float = math.inf

    def part(self, rows: slice) -> Targets:
        return replace(
            self,
            tokens_C=self.tokens_C[rows],
            weights_C=self.weights_C[rows],
            old_C=self.old_C[rows],
            sampler_C=self.sampler_C[rows],
        )

    @classmethod
    def of(cls, rows: Sequence[Row], cap: float | None) -> Targets:
        """The rows' tokens one after another."""
        tokens = [token for row in rows for token in row.completion_T]
        return cls(
            mx.array(np.array(tokens, np.int32)),
            _joined([row.weights_T for row in rows]),
            _joined([row.old_logprobs_T or [math.nan] * len(row.completion_T) for row in rows]),
            _joined([row.sampler_logprobs_T or [math.nan] * len(row.completion_T) for row in rows]),
            math.inf if cap is None else cap,
        )


def _joined(lists: list[list[float]]) -> mx.array:
    return mx.array(np.array([value for values in lists for value in values], np.float32))


def token_loss(
    logp_C: mx.array, targets: Targets, clip: tuple[float, float] | None
) -> tuple[mx.array, mx.array]:
    """Loss of each token and its derivative by the log-probability, both fp32 (C,).

    The weight is first multiplied by min(exp(logp - sampler's), the cap). Without an old log-probability
    the loss is `-w * logp`, with one PPO's `-min(r * w, clip(r) * w)`; see `engines.contract.Row`.

    >>> targets = Targets(mx.array([0]), mx.array([1.0]), mx.array([math.nan]), mx.array([math.log(0.1)]), 2.0)
    >>> loss, derivative = token_loss(mx.array([math.log(0.5)]), targets, None)
    >>> round(loss.item(), 4), derivative.item()
    (1.3863, -2.0)
    """
    ratio = mx.minimum(mx.exp(logp_C - targets.sampler_C), targets.sampler_cap)
    weights = mx.where(mx.isnan(targets.sampler_C), targets.weights_C, targets.weights_C * ratio)
    has_old = ~mx.isnan(targets.old_C)
    moved = mx.exp(logp_C - mx.where(has_old, targets.old_C, logp_C))
    loss = derivative = -weights * moved
    if clip is not None:
        bounded = -weights * mx.clip(moved, 1 - clip[0], 1 + clip[1])
        outside = bounded > loss
        loss, derivative = mx.where(outside, bounded, loss), mx.where(outside, 0.0, derivative)
    return mx.where(has_old, loss, -weights * logp_C), mx.where(has_old, derivative, -weights)


def mismatch(logp_C: mx.array, sampler_C: mx.array, cap: float) -> mx.array:
    """Sum of |logp - sampler's| in nats, tokens above the cap, and tokens counted, (3,)."""
    counted = ~mx.isnan(sampler_C)
    apart = mx.where(counted, logp_C - sampler_C, 0.0)
    return mx.stack([mx.abs(apart).sum(), (apart > math.log(cap)).sum(), counted.sum()])


def weighted_loss(
    hidden_Cd: mx.array, head_Vd: mx.array, targets: Targets, clip: tuple[float, float] | None
) -> tuple[mx.array, mx.array, mx.array]:
    """The sum of `token_loss`, its gradient by the hidden states (C, d), and `mismatch`."""
    losses, gradients, aparts = [], [], []
    for rows in chunks(hidden_Cd.shape[0], head_Vd.shape[0]):
        part = targets.part(rows)
        logits, logp, lse = _logp(hidden_Cd[rows], head_Vd, part.tokens_C)
        loss, derivative = token_loss(logp, part, clip)
        # d logp / d logits = onehot - softmax, times this token's derivative
        softmax = mx.exp(logits - lse[:, None]).astype(hidden_Cd.dtype)
        flowing = head_Vd[part.tokens_C].astype(mx.float32) - (softmax @ head_Vd).astype(mx.float32)
        losses.append(loss.sum())
        gradients.append((derivative[:, None] * flowing).astype(hidden_Cd.dtype))
        aparts.append(mismatch(logp, part.sampler_C, part.sampler_cap))
    return mx.stack(losses).sum(), mx.concatenate(gradients), mx.stack(aparts).sum(0)


def logprobs(hidden_Cd: mx.array, head_Vd: mx.array, tokens_C: mx.array) -> mx.array:
    """Log-probability of each token in nats, (C,) fp32."""
    parts = []
    for rows in chunks(tokens_C.shape[0], head_Vd.shape[0]):
        parts.append(_logp(hidden_Cd[rows], head_Vd, tokens_C[rows])[1])
        mx.eval(parts[-1])
    return mx.concatenate(parts)


def chunks(rows: int, vocabulary: int) -> list[slice]:
    """Slices of rows whose logits fit CHUNK_VALUES."""
    size = max(1, CHUNK_VALUES // vocabulary)
    return [slice(start, start + size) for start in range(0, rows, size)]


def _logp(hidden_Cd: mx.array, head_Vd: mx.array, tokens_C: mx.array) -> tuple[mx.array, mx.array, mx.array]:
    logits = (hidden_Cd @ head_Vd.T).astype(mx.float32)
    lse = mx.logsumexp(logits, axis=-1)
    return logits, mx.take_along_axis(logits, tokens_C[:, None], axis=-1)[:, 0] - lse, lse
