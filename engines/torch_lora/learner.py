"""One optimiser step over a batch of weighted rows, in micro-batches that fit into memory.

Weights are final when they arrive (`engines.contract.Row`), so the gradients of micro-batches simply add up. A
step that fails for any reason leaves adapter and optimiser unchanged."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import torch

from engines.batches import (
    NO_STEP,
    BatchLimits,
    Tokens,
    check_finite,
    check_tokens,
    logprobs_in_micro_batches,
    micro_batches,
    nats_by_row,
    step_stats,
    weighted_rows,
)
from engines.contract import Batch, EngineError, Row, StepStats, TokenSequence, progress
from engines.torch_lora.network.adapter import Adapter
from engines.torch_lora.network.logprobs import TokenTargets, logprobs, weighted_loss
from engines.torch_lora.network.network import Network
from engines.torch_lora.sampler import memory_recovery

CLIP_NORM = 1.0  # the usual norm; a bad batch must not break an adapter

MAX_TOKENS = {"cpu": 2048, "mps": 8192, "cuda": 32768}
"""Maximum tokens of a micro-batch; larger ones are no faster, and on a processor smaller ones stay in its
caches."""


MAX_SHARE = 0.5
"""Maximum memory of a micro-batch on a processor, as a share of the weights' size: larger ones gain nothing,
and other programs need the memory."""

MIN_BYTES = 2**29
"""Minimum bytes allowed by that share, so that it does not limit small models."""


def measured_limits(network: Network, free_bytes: int) -> BatchLimits:
    """Returns the limits of a micro-batch for this much free memory. On a processor a micro-batch uses at most
    half as much memory as the weights."""
    token_bytes = network.token_bytes(checkpointing=False)
    most, recomputed = MAX_TOKENS[network.device.type], network.token_bytes(checkpointing=True)
    limits = BatchLimits.for_memory(free_bytes, most, token_bytes, recomputed)
    if network.device.type == "cpu" and not limits.checkpointing:
        allowed = max(MIN_BYTES, int(network.weight_bytes * MAX_SHARE))
        limits.tokens = min(limits.tokens, max(256, allowed // token_bytes))
    return limits


class Learner:
    """Computes gradients and log-probabilities of one network under an adapter. `limits` step down when memory
    runs out, and `notice` is called with a sentence about it."""

    def __init__(self, network: Network, limits: BatchLimits, notice: Callable[[str], None]) -> None:
        self.network, self.limits, self._notice = network, limits, notice
        self._upper = False

    def step(self, adapter: Adapter, batch: Batch) -> StepStats:
        """Minimises the batch's weighted loss by one AdamW step. Raises EngineError for malformed rows, a loss
        or gradient that is not finite, or too little memory."""
        start = time.perf_counter()
        rows = weighted_rows(batch, self.network.vocabulary)
        if not rows:
            return NO_STEP
        self._upper = batch.upper
        loss, apart, nats_S, pieces = memory_recovery(self.network.device).retry_learning(
            lambda: self._gather_gradient(adapter, rows, batch), self.limits, self._notice
        )
        norm = float(adapter.gradients.norm())
        try:
            check_finite(loss, norm)
        except EngineError:
            adapter.clear_gradients()
            raise
        adapter.update(batch.learning_rate, norm, CLIP_NORM)
        return step_stats(rows, loss, norm, pieces, apart.tolist(), nats_S, time.perf_counter() - start)

    @torch.no_grad()
    def logprobs(self, adapter: Adapter, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        """Returns the log-probabilities (nats) of every completion's tokens under the adapter."""
        network, pairs_S = self.network, [(one.prompt_T, one.completion_T) for one in sequences_S]
        check_tokens(pairs_S, network.vocabulary)

        def found(part: list[tuple[Tokens, Tokens]], tokens: list[int]) -> list[float]:
            states = network.states(adapter, part, checkpointing=False, upper=self._upper)
            out: list[float] = logprobs(states, torch.tensor(tokens, device=network.device)).tolist()
            return out

        return memory_recovery(network.device).retry_learning(
            lambda: logprobs_in_micro_batches(
                pairs_S, self.limits.tokens, found, network.shares_prompts(False)
            ),
            self.limits,
            self._notice,
        )

    def _gather_gradient(
        self, adapter: Adapter, rows: Sequence[Row], batch: Batch
    ) -> tuple[float, torch.Tensor, list[float], int]:
        """Computes the gradient of all `rows` in the adapter. Returns the loss, the sum of `logprobs.mismatch`,
        the rows' nats and the number of micro-batches."""
        network, checkpointing = self.network, self.limits.checkpointing
        adapter.clear_gradients()
        sequences = [(row.prompt_T, row.completion_T) for row in rows]
        pieces = micro_batches(sequences, self.limits.tokens, network.shares_prompts(checkpointing))
        total, total_apart, nats_S = 0.0, torch.zeros(3, dtype=torch.float64), [0.0] * len(rows)
        for piece in pieces:
            some = [sequences[index] for index in piece]
            states = network.states(adapter, some, checkpointing, self._upper)
            targets = _targets([rows[index] for index in piece], network.device, batch.sampler_cap)
            loss, apart, logps_C = weighted_loss(states, targets, batch.clip)
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
            progress.add(sum(len(rows[index].completion_T) for index in piece))
            total_apart += apart.cpu()
            found = nats_by_row(logps_C.tolist(), [len(rows[index].completion_T) for index in piece])
            for index, nats in zip(piece, found, strict=True):
                nats_S[index] = nats
        return total, total_apart, nats_S, len(pieces)


def _targets(rows: Sequence[Row], device: torch.device, cap: float | None) -> TokenTargets:
    old, has_old, sampler = [], [], []
    for row in rows:
        old += row.old_logprobs_T or [0.0] * len(row.completion_T)
        has_old += [row.old_logprobs_T is not None] * len(row.completion_T)
        sampler += row.sampler_logprobs_T or [math.nan] * len(row.completion_T)
    sampled = any(row.sampler_logprobs_T for row in rows)
    return TokenTargets(
        tokens_C=torch.tensor([t for row in rows for t in row.completion_T], device=device),
        weights_C=torch.tensor([w for row in rows for w in row.weights_T], dtype=torch.float32, device=device),
        old_C=torch.tensor(old, dtype=torch.float32, device=device),
        has_old_C=torch.tensor(has_old, device=device),
        sampler_C=torch.tensor(sampler, dtype=torch.float32, device=device) if sampled else None,
        sampler_cap=math.inf if cap is None else cap,
    )
