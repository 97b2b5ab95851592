"""One optimiser step over a batch of weighted rows, in micro-batches that fit the memory.

Weights are final when they arrive (`engines.contract.Row`), so micro-batches simply add up. A step that fails
for any reason leaves adapter and optimiser as they were.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import torch

from engines.batches import Limits, Tokens, check_tokens, micro_batches, weighted_rows
from engines.contract import Batch, EngineError, Row, StepStats
from engines.torch_lora.adapter import Adapter
from engines.torch_lora.device import is_out_of_memory
from engines.torch_lora.logprobs import TokenTargets, logprobs, weighted_loss
from engines.torch_lora.network import Network
from engines.torch_lora.sampler import release

CLIP_NORM = 1.0

MOST_TOKENS = {"cpu": 2048, "mps": 8192, "cuda": 32768}
"""Tokens of a micro-batch above which nothing gets faster; on a processor, smaller ones stay in its caches."""


MOST_SHARE = 0.5
"""Of the size of the weights: what a micro-batch may take on a processor, where larger ones gain nothing and
other programs want the memory."""

LEAST_BYTES = 2**29
"""Small models are not held to that share."""


def measured(network: Network, free_bytes: int) -> Limits:
    """How much is learned from at once. On a processor a micro-batch takes at most half of what the weights
    do."""
    token_bytes = network.token_bytes(checkpointing=False)
    most, recomputed = MOST_TOKENS[network.device.type], network.token_bytes(checkpointing=True)
    limits = Limits.fitting(free_bytes, most, token_bytes, recomputed)
    if network.device.type == "cpu" and not limits.checkpointing:
        allowed = max(LEAST_BYTES, int(network.weight_bytes * MOST_SHARE))
        limits.tokens = min(limits.tokens, max(256, allowed // token_bytes))
    return limits


def step(
    network: Network, adapter: Adapter, batch: Batch, limits: Limits, notice: Callable[[str], None]
) -> StepStats:
    """Minimises the batch's weighted loss by one AdamW step; `notice` hears when the limits step down.

    Raises EngineError for malformed rows, a loss or gradient that is not finite, or too little memory."""
    start = time.perf_counter()
    rows = weighted_rows(batch, network.vocabulary)
    if not rows:
        return StepStats(loss=0.0, grad_norm=0.0, rows=0, tokens=0, micro_batches=0, seconds=0.0)
    while True:
        adapter.clear_gradients()
        try:
            loss, apart, pieces = _gather_gradient(network, adapter, rows, batch.clip, limits)
            break
        except (RuntimeError, MemoryError) as error:
            _smaller(error, limits, notice)
            release(network.device)
    adapter.leave_held()
    norm = float(adapter.gradients.norm())
    if not (math.isfinite(loss) and math.isfinite(norm)):
        adapter.clear_gradients()
        raise EngineError(
            f"The step was not made, because its loss ({loss}) or gradient ({norm}) is not a finite number: "
            "go back to an earlier checkpoint if this comes again."
        )
    adapter.update(batch.learning_rate, norm, CLIP_NORM)
    distance, capped, sampled = apart.tolist()
    return StepStats(
        loss=loss,
        grad_norm=norm,
        rows=len(rows),
        tokens=sum(len(row.completion_T) for row in rows),
        micro_batches=pieces,
        seconds=time.perf_counter() - start,
        mismatch=distance / sampled if sampled else None,
        capped=capped / sampled if sampled else None,
    )


def _gather_gradient(
    network: Network, adapter: Adapter, rows: Sequence[Row], clip: tuple[float, float] | None, limits: Limits
) -> tuple[float, torch.Tensor, int]:
    """Adds the whole batch's gradient to the adapter's. Gives the loss, `logprobs.mismatch` and the number of
    micro-batches."""
    sequences = [(row.prompt_T, row.completion_T) for row in rows]
    pieces = micro_batches(sequences, limits.tokens)
    total, total_apart = 0.0, torch.zeros(3, dtype=torch.float64)
    for piece in pieces:
        states = network.states(adapter, [sequences[index] for index in piece], limits.checkpointing)
        loss, apart = weighted_loss(states, _targets([rows[index] for index in piece], network.device), clip)
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach())
        total_apart += apart.cpu()
    return total, total_apart, len(pieces)


def _targets(rows: Sequence[Row], device: torch.device) -> TokenTargets:
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
    )


@torch.no_grad()
def score(
    network: Network,
    adapter: Adapter,
    sequences_S: Sequence[tuple[Tokens, Tokens]],
    limits: Limits,
    notice: Callable[[str], None],
) -> list[list[float]]:
    """Log-probabilities (nats) of every completion's tokens under the adapter."""
    check_tokens(sequences_S, network.vocabulary)
    while True:
        try:
            return _score(network, adapter, sequences_S, limits.tokens)
        except (RuntimeError, MemoryError) as error:
            _smaller(error, limits, notice)
            release(network.device)


def _smaller(error: Exception, limits: Limits, notice: Callable[[str], None]) -> None:
    """Steps the limits down when memory ran out, and says so. Raises the error if it was another one, and
    EngineError when nothing smaller is left."""
    if not is_out_of_memory(error):
        raise error
    sentence = limits.step_down()
    if sentence is None:
        raise EngineError(
            "The learner does not fit into the memory: choose a smaller model or shorter answers."
        ) from error
    notice(sentence)


def _score(
    network: Network, adapter: Adapter, sequences_S: Sequence[tuple[Tokens, Tokens]], tokens: int
) -> list[list[float]]:
    results: list[list[float]] = [[] for _ in sequences_S]
    filled = [index for index, (_, completion) in enumerate(sequences_S) if completion]
    for piece in micro_batches([sequences_S[index] for index in filled], tokens):
        part = [sequences_S[filled[index]] for index in piece]
        targets = torch.tensor([t for _, completion in part for t in completion], device=network.device)
        found = logprobs(network.states(adapter, part, checkpointing=False), targets).tolist()
        start = 0
        for index in piece:
            length = len(sequences_S[filled[index]][1])
            results[filled[index]] = found[start : start + length]
            start += length
    return results
