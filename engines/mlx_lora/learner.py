"""One optimiser step over a batch of weighted rows, in micro-batches that fit into memory.

Weights are final when they arrive (`engines.contract.Row`), so the gradients of micro-batches simply add up. A
step that fails for any reason leaves adapter and optimiser unchanged.

Prompts and completions are padded blocks: each distinct prompt once, completions after their prompts.
Completions of similar length share a block, because most answers are short and a few reach the limit: a single
block would be mostly padding, and took four times as long. Sizes: P distinct prompts of L tokens, S completions
that feed F tokens, K = L + F keys, C predicted tokens.

Log-probabilities and the weighted loss have the formulas of engines.torch_lora.network.logprobs. The head is
frozen and the loss of a token depends on its own log-probability alone, so the gradient of the hidden states is
formed beside the loss, a chunk of logits at a time, and automatic differentiation never sees any logits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import mlx.core as mx
import numpy as np

from engines.batches import (
    NO_STEP,
    BatchLimits,
    Tokens,
    check_finite,
    check_tokens,
    logit_chunks,
    logprobs_in_micro_batches,
    micro_batches,
    nats_by_row,
    step_stats,
    weighted_rows,
)
from engines.contract import Batch, Row, StepStats, TokenSequence, progress
from engines.mlx_lora.adapter import Adapter
from engines.mlx_lora.network import MEMORY, Network
from engines.mlx_lora.sampler import PromptCache

MIN_BLOCK = 8
"""Length of the shortest block; each further block holds completions of up to twice the length."""


@dataclass(frozen=True)
class Block:
    """Completions of similar length: their tokens except the last, the index of each one's prompt, that
    prompt's length, and the attention mask (S, 1, F, K)."""

    fed_SF: mx.array
    owner_S: mx.array
    before_S: mx.array
    mask_SFK: mx.array


@dataclass(frozen=True)
class Layout:
    """Index arrays of one forward pass. `predict_C` indexes the prompts' states first, then those of each
    block."""

    prompt_PL: mx.array
    blocks: tuple[Block, ...]
    predict_C: mx.array


def pack(sequences_S: Sequence[tuple[Tokens, Tokens]]) -> Layout:
    """Arranges sequences that passed `check_tokens`. Predicted tokens come in the order of the sequences. The
    last token of each completion is only predicted, so a completion of one token is in no block."""
    prompt_of: dict[tuple[int, ...], int] = {}
    owners = [prompt_of.setdefault(tuple(prompt), len(prompt_of)) for prompt, _ in sequences_S]
    prompts = list(prompt_of)
    prompt_PL = _filled(prompts)
    longest = prompt_PL.shape[1]
    by_size: dict[int, list[int]] = {}
    for index, (_, completion) in enumerate(sequences_S):
        if len(completion) > 1:
            by_size.setdefault(_size(len(completion) - 1), []).append(index)

    blocks, starts, offset = [], {}, prompt_PL.size
    for _, members in sorted(by_size.items()):
        fed_SF = _filled([sequences_S[index][1][:-1] for index in members])
        most = fed_SF.shape[1]
        for row, index in enumerate(members):
            starts[index] = offset + row * most
        offset += fed_SF.size
        owner_S = np.array([owners[index] for index in members], np.int32)
        before_S = np.array([len(prompts[owner]) for owner in owner_S], np.int32)
        mask_SFK = np.zeros((len(members), 1, most, longest + most), bool)
        mask_SFK[..., :longest] = (np.arange(longest) < before_S[:, None])[:, None, None]
        mask_SFK[..., longest:] = np.tril(np.ones((most, most), bool))
        blocks.append(Block(mx.array(fed_SF), mx.array(owner_S), mx.array(before_S), mx.array(mask_SFK)))

    predict: list[int] = []
    for index, (prompt, completion) in enumerate(sequences_S):
        if completion:
            predict.append(owners[index] * longest + len(prompt) - 1)
        if len(completion) > 1:
            predict.extend(range(starts[index], starts[index] + len(completion) - 1))
    return Layout(mx.array(prompt_PL), tuple(blocks), mx.array(np.array(predict, np.int32)))


def _size(length: int) -> int:
    """Returns the block length for a completion length: MIN_BLOCK times a power of two.

    >>> [_size(length) for length in (1, 8, 9, 17, 33)]
    [8, 8, 16, 32, 64]
    """
    size = MIN_BLOCK
    while size < length:
        size *= 2
    return size


def _filled(rows: Sequence[Sequence[int]]) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
    """Returns the rows as an array, padded with 0 to the longest."""
    block = np.zeros((len(rows), max(map(len, rows))), np.int32)
    for target, row in zip(block, rows, strict=True):
        target[: len(row)] = row
    return block


@dataclass(frozen=True)
class Targets:
    """Per predicted token: its id, its weight, and its log-probabilities before the step and under the sampler,
    NaN where not given."""

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
        """Concatenates the tokens of all rows; `cap` is the maximum importance weight, None for no maximum."""
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
    """Returns the loss of each token and its derivative with respect to the log-probability, both fp32 (C,).

    The weight is first multiplied by min(exp(logp - sampler's), cap). Without an old log-probability the loss
    is `-w * logp`, with one it is PPO's `-min(r * w, clip(r) * w)`; see `engines.contract.Row`.

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
    """Returns the sum of |logp - sampler's| in nats, the number of tokens above the cap, and the number of
    tokens counted, (3,)."""
    counted = ~mx.isnan(sampler_C)
    apart = mx.where(counted, logp_C - sampler_C, 0.0)
    return mx.stack([mx.abs(apart).sum(), (apart > math.log(cap)).sum(), counted.sum()])


def weighted_loss(
    hidden_Cd: mx.array, head_Vd: mx.array, targets: Targets, clip: tuple[float, float] | None
) -> tuple[mx.array, mx.array, mx.array, mx.array]:
    """Returns the sum of `token_loss`, its gradient with respect to the hidden states (C, d), `mismatch`, and
    the log-probability of each token, (C,)."""
    losses, gradients, aparts, logps = [], [], [], []
    for rows in logit_chunks(hidden_Cd.shape[0], head_Vd.shape[0]):
        part = targets.part(rows)
        logits, logp, lse = _logp(hidden_Cd[rows], head_Vd, part.tokens_C)
        loss, derivative = token_loss(logp, part, clip)
        # d logp / d logits = onehot - softmax, times this token's derivative
        softmax = mx.exp(logits - lse[:, None]).astype(hidden_Cd.dtype)
        flowing = head_Vd[part.tokens_C].astype(mx.float32) - (softmax @ head_Vd).astype(mx.float32)
        losses.append(loss.sum())
        logps.append(logp)
        gradients.append((derivative[:, None] * flowing).astype(hidden_Cd.dtype))
        aparts.append(mismatch(logp, part.sampler_C, part.sampler_cap))
    return mx.stack(losses).sum(), mx.concatenate(gradients), mx.stack(aparts).sum(0), mx.concatenate(logps)


def logprobs(hidden_Cd: mx.array, head_Vd: mx.array, tokens_C: mx.array) -> mx.array:
    """Returns the log-probability of each token in nats, (C,) fp32."""
    parts = []
    for rows in logit_chunks(tokens_C.shape[0], head_Vd.shape[0]):
        parts.append(_logp(hidden_Cd[rows], head_Vd, tokens_C[rows])[1])
        mx.eval(parts[-1])
    return mx.concatenate(parts)


def _logp(hidden_Cd: mx.array, head_Vd: mx.array, tokens_C: mx.array) -> tuple[mx.array, mx.array, mx.array]:
    logits = (hidden_Cd @ head_Vd.T).astype(mx.float32)
    lse = mx.logsumexp(logits, axis=-1)
    return logits, mx.take_along_axis(logits, tokens_C[:, None], axis=-1)[:, 0] - lse, lse


CLIP_NORM = 1.0  # the usual norm; a bad batch must not break an adapter

MAX_TOKENS = {"cpu": 2048, "gpu": 8192}
"""Maximum tokens of a micro-batch; larger ones are no faster, and on a processor smaller ones stay in its
caches."""


def measured_limits(network: Network, free_bytes: int, on_gpu: bool) -> BatchLimits:
    """Returns the limits of a micro-batch for this much free memory."""
    most = MAX_TOKENS["gpu" if on_gpu else "cpu"]
    kept, recomputed = (network.token_bytes(checkpointing=again) for again in (False, True))
    return BatchLimits.for_memory(free_bytes, most, kept, recomputed)


class SharedPromptCache:
    """Cache for mlx-lm's attention over completions: prepends the keys and values of their prompts."""

    def __init__(self, prompt: PromptCache, block: Block) -> None:
        self._prompt, self._owner_S = prompt, block.owner_S
        self.offset = block.before_S

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        return (
            mx.concatenate([self._prompt.keys[self._owner_S], keys], axis=2),
            mx.concatenate([self._prompt.values[self._owner_S], values], axis=2),
        )


class Learner:
    """Computes gradients and log-probabilities of one network under an adapter; `limits` step down when memory
    runs out."""

    def __init__(self, network: Network, limits: BatchLimits, notice: Callable[[str], None]) -> None:
        self.limits = limits
        self._network = network
        self._notice = notice

    def step(self, adapter: Adapter, batch: Batch) -> StepStats:
        """Minimises the batch's weighted loss by one AdamW step. Raises EngineError for malformed rows, a loss
        or gradient that is not finite, or too little memory."""
        start = time.perf_counter()
        rows = weighted_rows(batch, self._network.shape.vocabulary)
        if not rows:
            return NO_STEP
        loss, gradient, apart, nats_S, pieces = MEMORY.retry_learning(
            lambda: self._gather(adapter, rows, batch), self.limits, self._notice
        )
        norm: Any = mx.linalg.norm(gradient).item()
        check_finite(loss, norm)
        adapter.update(gradient if norm <= CLIP_NORM else gradient * (CLIP_NORM / norm), batch.learning_rate)
        return step_stats(rows, loss, norm, pieces, apart, nats_S, time.perf_counter() - start)

    def logprobs(self, adapter: Adapter, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        """Returns the log-probabilities (nats) of every completion's tokens under the adapter."""
        pairs_S = [(one.prompt_T, one.completion_T) for one in sequences_S]
        check_tokens(pairs_S, self._network.shape.vocabulary)
        matrices = adapter.matrices(adapter.values)

        def found(part: list[tuple[Tokens, Tokens]], tokens: list[int]) -> list[float]:
            hidden = self._states(matrices, pack(part))
            out: Any = logprobs(hidden, self._network.head, mx.array(tokens)).tolist()
            return list(out)

        return MEMORY.retry_learning(
            lambda: logprobs_in_micro_batches(pairs_S, self.limits.tokens, found), self.limits, self._notice
        )

    def _gather(
        self, adapter: Adapter, rows: Sequence[Row], batch: Batch
    ) -> tuple[float, mx.array, list[float], list[float], int]:
        """Returns loss and gradient of the whole batch, the sum of `mismatch`, the rows' nats, and the number
        of micro-batches."""
        sequences = [(row.prompt_T, row.completion_T) for row in rows]
        pieces = micro_batches(sequences, self.limits.tokens)
        total: Any = 0.0
        gradient, apart, nats_S = mx.zeros_like(adapter.values), np.zeros(3), [0.0] * len(rows)
        for piece in pieces:
            layout = pack([sequences[index] for index in piece])
            targets = Targets.of([rows[index] for index in piece], batch.sampler_cap)
            loss, away, logps, part = self._gradient(adapter, layout, targets, batch.clip)
            gradient = gradient + part
            mx.eval(loss, away, logps, gradient)
            total += loss.item()
            progress.add(sum(len(rows[index].completion_T) for index in piece))
            apart += np.array(away)
            found = nats_by_row(np.array(logps).tolist(), [len(rows[index].completion_T) for index in piece])
            for index, nats in zip(piece, found, strict=True):
                nats_S[index] = nats
        return total, gradient, apart.tolist(), nats_S, len(pieces)

    def _gradient(
        self, adapter: Adapter, layout: Layout, targets: Targets, clip: tuple[float, float] | None
    ) -> tuple[mx.array, mx.array, mx.array, mx.array]:
        """Returns loss, `mismatch` and log-probabilities of one micro-batch, and the gradient with respect
        to the adapter's values.

        Not compiled as a whole: mx.compile saved 14 % when all shapes repeated and cost 35 % when they did not,
        and the shapes differ from round to round. mlx-lm compiles its activations."""
        if self.limits.checkpointing:
            return self._gradient_by_layers(adapter, layout, targets, clip)

        def surrogate(values: mx.array) -> tuple[mx.array, mx.array, mx.array, mx.array]:
            """Has the loss's gradient: hidden states times what the loss says of them, as a constant."""
            hidden = self._states(adapter.matrices(values), layout)
            loss, slope, apart, logps = weighted_loss(
                mx.stop_gradient(hidden), self._network.head, targets, clip
            )
            return (hidden * slope).astype(mx.float32).sum(), loss, apart, logps

        (_, loss, apart, logps), gradient = mx.value_and_grad(surrogate)(adapter.values)
        return loss, apart, logps, gradient

    def _gradient_by_layers(
        self, adapter: Adapter, layout: Layout, targets: Targets, clip: tuple[float, float] | None
    ) -> tuple[mx.array, mx.array, mx.array, mx.array]:
        """Like `_gradient` with gradient checkpointing: keeps only the input of each layer and recomputes the
        layer in the backward pass.

        Written out layer by layer, because mx.checkpoint leaves the time of recomputing to MLX's evaluation,
        which kept two thirds of the memory of twelve layers."""
        network = self._network
        matrices = adapter.matrices(adapter.values)
        network.bind(matrices)
        layers = network.learner.model.layers
        streams, entering = self._embedded(layout), []
        for layer in layers:
            entering.append(streams)
            streams = _through(layer, streams, layout)
            mx.eval(streams)

        def top(*streams: mx.array) -> mx.array:
            return self._predicting(list(streams), layout)

        loss, slope, apart, logps = weighted_loss(top(*streams), network.head, targets, clip)
        _, flowing = mx.vjp(top, streams, [slope])
        mx.eval(loss, apart, logps, flowing)

        each = len(matrices) // len(layers)
        found: list[mx.array] = []
        for index in reversed(range(len(layers))):
            pairs = matrices[index * each : (index + 1) * each]

            def run(*arrays: mx.array, index: int = index) -> list[mx.array]:
                sides = arrays[: 2 * each]
                network.bind(list(zip(sides[::2], sides[1::2], strict=True)), index * each)
                return _through(layers[index], list(arrays[2 * each :]), layout)

            sides = [side for pair in pairs for side in pair]
            _, gradients = mx.vjp(run, [*sides, *entering.pop()], flowing)
            mx.eval(gradients)
            flowing = gradients[2 * each :]
            found = gradients[: 2 * each] + found
        return loss, apart, logps, mx.concatenate([gradient.reshape(-1) for gradient in found])

    def _states(self, matrices: list[tuple[mx.array, mx.array]], layout: Layout) -> mx.array:
        """Returns the normed hidden states (C, d) at the positions that predict the completions' tokens."""
        self._network.bind(matrices)
        streams = self._embedded(layout)
        for layer in self._network.learner.model.layers:
            streams = _through(layer, streams, layout)
        return self._predicting(streams, layout)

    def _embedded(self, layout: Layout) -> list[mx.array]:
        """Returns the input of the first layer: for the prompts, and for each block of completions."""
        embed = self._network.learner.model.embed_tokens
        return [embed(layout.prompt_PL), *(embed(block.fed_SF) for block in layout.blocks)]

    def _predicting(self, streams: list[mx.array], layout: Layout) -> mx.array:
        both = mx.concatenate([stream.reshape(-1, stream.shape[-1]) for stream in streams])
        states: mx.array = self._network.learner.model.norm(both[layout.predict_C])
        return states


def _through(layer: Any, streams: list[mx.array], layout: Layout) -> list[mx.array]:
    """Runs one layer: prompts attend to themselves, completions to their prompt and themselves."""
    reading = PromptCache()
    prompt = layer(streams[0], "causal", reading)
    return [
        prompt,
        *(
            layer(stream, block.mask_SFK, SharedPromptCache(reading, block))
            for stream, block in zip(streams[1:], layout.blocks, strict=True)
        ),
    ]
