"""The sampling loop: temperature 1, no truncation of the distribution, exact log-probabilities.

Every token is drawn by inverting the cumulative distribution at one uniform number. These are drawn beforehand
from the seed, one per row and step, so a row's tokens do not depend on its neighbours, on rows that left the
batch, or on how memory cut the batch. The same method as engines.torch_lora.sampler, with numbers of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import numpy as np

from engines.contract import EngineError
from engines.mlx_lora.memory import MEMORY
from engines.mlx_lora.rollout import Rollout
from engines.text import Sampled, Told

COMPACT_BELOW = 0.8
"""Finished rows leave the batch when no more than this share is still going: each time, the cache is copied."""

LOOK_EVERY = 8
"""Steps between two looks at a GPU's tokens, because each look waits for it; a processor's are seen at once."""


@dataclass(frozen=True)
class Request:
    """`n` completions wanted for each prompt; `stops` are the tokens that end one. `told` hears the tokens of
    the first completion as often as they are looked at."""

    prompts_P: Sequence[list[int]]
    n: int
    max_tokens: int
    seed: int
    stops: frozenset[int]
    temperature: float = 1.0
    told: Told | None = None


def sample(
    request: Request, rollout: Callable[[], Rollout], prompts_per_pass: int, on_gpu: bool
) -> tuple[list[list[Sampled]], int]:
    """Completions as [prompt][completion], and how many prompts fitted into one pass.

    Starts with `prompts_per_pass` and halves it when memory runs out. Raises EngineError when not even one
    prompt fits, or when the model's logits are not finite."""
    random = np.random.default_rng(request.seed & (2**64 - 1))
    uniforms_PGT = random.random((len(request.prompts_P), request.n, request.max_tokens))
    results: list[list[Sampled]] = []

    def run(part: slice) -> None:
        results.extend(_run(request.prompts_P[part], uniforms_PGT[part], request, rollout(), on_gpu))

    used = MEMORY.sampling(run, len(request.prompts_P), prompts_per_pass, request.n, request.max_tokens)
    return results, used


def _run(
    prompts_P: Sequence[list[int]], uniforms_PGT: Any, request: Request, rollout: Rollout, on_gpu: bool
) -> list[list[Sampled]]:
    """One pass over some prompts."""
    rows, most = len(prompts_P) * request.n, request.max_tokens
    uniforms_RT = np.minimum(uniforms_PGT.reshape(rows, most), 1 - 2**-24).astype(np.float32)
    stops = np.array(sorted(request.stops))
    tokens_RT, logps_RT = np.zeros((rows, most), np.int64), np.zeros((rows, most), np.float32)
    place_R, stopped = np.arange(rows), np.zeros(rows, bool)
    unseen: list[tuple[int, mx.array, mx.array]] = []

    logits_RV = rollout.prefill(prompts_P, request.n, most)
    for step in range(most):
        if request.temperature != 1:
            logits_RV = logits_RV / request.temperature
        token_R, logp_R = draw(logits_RV, mx.array(uniforms_RT[place_R, step]))
        mx.async_eval(token_R, logp_R)  # type: ignore[no-untyped-call]
        unseen.append((step, token_R, logp_R))
        last = step + 1 == most
        if last or not on_gpu or step % LOOK_EVERY == LOOK_EVERY - 1:
            for at, tokens, logps in unseen:
                tokens_RT[place_R, at], logps_RT[place_R, at] = np.array(tokens), np.array(logps)
                stopped[place_R] |= np.isin(tokens_RT[place_R, at], stops)
            unseen = []
            going = np.flatnonzero(~stopped[place_R])
            if last or len(going) == 0:
                break
            if request.told is not None and not request.told(tokens_RT[0, : step + 1].tolist()):
                break
            if len(going) <= COMPACT_BELOW * len(place_R):
                rollout.keep(going)
                token_R, place_R = token_R[mx.array(going)], place_R[going]
        logits_RV = rollout.advance(token_R)
    if not np.isfinite(logps_RT).all():
        raise EngineError("The model produced numbers that aren't finite: go back to an earlier checkpoint.")
    seen = slice(step + 1)
    found = [_cut(ids[seen], logps[seen], stops) for ids, logps in zip(tokens_RT, logps_RT, strict=True)]
    return [found[first : first + request.n] for first in range(0, rows, request.n)]


def draw(logits_RV: mx.array, uniforms_R: mx.array) -> tuple[mx.array, mx.array]:
    """Tokens at the given quantiles of softmax(logits), and their log-probabilities; `uniforms` in [0, 1).

    >>> token, logp = draw(mx.array([[0.0, 0.0]]), mx.array([0.6]))
    >>> token.tolist(), round(logp.item(), 4)
    ([1], -0.6931)
    """
    lse = mx.logsumexp(logits_RV, axis=-1, keepdims=True)
    cumulative = mx.cumsum(mx.exp(logits_RV - lse), axis=-1)
    below = cumulative <= uniforms_R[:, None] * cumulative[:, -1:]
    token = mx.minimum(below.sum(-1), logits_RV.shape[-1] - 1)
    return token, (mx.take_along_axis(logits_RV, token[:, None], axis=-1) - lse)[:, 0]


def _cut(tokens_T: Any, logps_T: Any, stops: Any) -> Sampled:
    """A row up to its first end token."""
    ends = np.flatnonzero(np.isin(tokens_T, stops))
    length = int(ends[0]) + 1 if len(ends) else len(tokens_T)
    return tokens_T[:length].tolist(), logps_T[:length].tolist(), bool(len(ends))
