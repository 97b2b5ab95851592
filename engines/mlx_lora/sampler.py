"""The sampling loop: temperature 1, no truncation of the distribution, exact log-probabilities.

Every token is sampled by inverting the cumulative distribution at a uniform number. These numbers are drawn
beforehand from the seed, one per row and step, so a row's tokens do not depend on its neighbours, on rows that
left the batch, or on how the batch was split. The same method as engines.torch_lora.sampler, with different
random numbers.

Each prompt is read once, and its keys and values are repeated for its rows. Prompts lie at columns [0, longest
prompt) and what is generated behind them, so a step writes one column for all rows; behind shorter prompts
masked columns remain, and each row turns its heads by its own position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from engines.contract import EngineError, progress
from engines.mlx_lora.network import MEMORY, Network
from engines.models.tokens import Sampled, Told

PREFILL_TOKENS = 4096
"""Maximum prompt tokens read in one pass; more would only make the activations larger."""


class PromptCache:
    """Cache for mlx-lm's attention over a prompt: keeps its keys and values."""

    def __init__(self) -> None:
        self.offset = 0

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        self.keys, self.values = keys, values
        return keys, values


class CompletionCache:
    """One layer's KV cache while completions grow, (R, heads, columns, width); `offset` is each row's
    position."""

    def __init__(self, keys: mx.array, values: mx.array, offset: mx.array, column: int) -> None:
        self.keys, self.values = keys, values
        self.offset, self.column = offset, column

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        used = self.column + 1
        self.keys[:, :, self.column : used] = keys
        self.values[:, :, self.column : used] = values
        return self.keys[:, :, :used], self.values[:, :, :used]


class Rollout:
    """A batch of completions of one decoder, `n` per prompt; rows are in the prompts' order."""

    def __init__(self, network: Network, decoder: Any) -> None:
        self._network = network
        self._decoder = decoder

    def prefill(self, prompts_P: Sequence[Sequence[int]], n: int, max_tokens: int) -> mx.array:
        """Reads the prompts. Returns the logits of the first tokens, (P * n, V) fp32."""
        lengths = np.array([len(prompt) for prompt in prompts_P])
        longest = int(lengths.max())
        tokens_PL = np.zeros((len(prompts_P), longest), np.int32)
        for row, prompt in zip(tokens_PL, prompts_P, strict=True):
            row[: len(prompt)] = prompt
        parts, logits = [], []
        step = max(1, PREFILL_TOKENS // longest)
        for first in range(0, len(prompts_P), step):
            rows = slice(first, first + step)
            read, behind = self._read(mx.array(tokens_PL[rows]), mx.array(lengths[rows] - 1))
            parts.append(read)
            logits.append(behind)
        position_R = mx.array(np.repeat(lengths, n).astype(np.int32))
        self._caches = []
        for layer in zip(*parts, strict=True):
            keys = _repeated([read.keys for read in layer], n, max_tokens)
            values = _repeated([read.values for read in layer], n, max_tokens)
            self._caches.append(CompletionCache(keys, values, position_R, longest))
        self._seen: mx.array | None = None
        if lengths.min() != longest:
            column_T = np.arange(longest + max_tokens)
            seen_RT = (column_T < np.repeat(lengths, n)[:, None]) | (column_T >= longest)
            self._seen = mx.array(seen_RT)[:, None, None]
        first_logits = mx.repeat(mx.concatenate(logits), n, axis=0)
        self._evaluate(first_logits)
        return first_logits

    def _read(self, tokens_PL: mx.array, last_P: mx.array) -> tuple[list[PromptCache], mx.array]:
        caches = [PromptCache() for _ in range(self._network.shape.layers)]
        hidden = self._decoder.model.embed_tokens(tokens_PL)
        for layer, cache in zip(self._decoder.model.layers, caches, strict=True):
            hidden = layer(hidden, "causal", cache)
        behind = mx.take_along_axis(hidden, last_P[:, None, None], axis=1)[:, 0]
        logits = self._network.logits(self._decoder, behind)
        mx.eval(logits, [(cache.keys, cache.values) for cache in caches])
        return caches, logits

    def advance(self, tokens_R: mx.array) -> mx.array:
        """Appends one token to every row. Returns the logits of the next tokens, (R, V) fp32, not evaluated
        yet."""
        used = self._caches[0].column + 1
        mask = None if self._seen is None else self._seen[..., :used]
        hidden = self._decoder.model.embed_tokens(tokens_R[:, None])
        for layer, cache in zip(self._decoder.model.layers, self._caches, strict=True):
            hidden = layer(hidden, mask, cache)
        following = self._caches[0].offset + 1
        for cache in self._caches:
            cache.offset, cache.column = following, used
        return self._network.logits(self._decoder, hidden[:, 0])

    def keep(self, rows_R: Any) -> None:
        """Keeps only these rows, in this order."""
        rows = mx.array(rows_R)
        offset = self._caches[0].offset[rows]
        for cache in self._caches:
            cache.keys, cache.values, cache.offset = cache.keys[rows], cache.values[rows], offset
        if self._seen is not None:
            self._seen = self._seen[rows]
        self._evaluate(offset)

    def _evaluate(self, *arrays: mx.array) -> None:
        """Evaluates the caches now, so that their old arrays are freed."""
        mx.eval(*arrays, [(cache.keys, cache.values) for cache in self._caches])


def _repeated(parts: Sequence[mx.array], n: int, more: int) -> mx.array:
    """Returns prompts' keys or values (P, heads, L, width), each repeated `n` times, with room for `more`
    columns."""
    whole = parts[0] if len(parts) == 1 else mx.concatenate(list(parts))
    return mx.pad(mx.repeat(whole, n, axis=0), [(0, 0), (0, 0), (0, more), (0, 0)])


COMPACT_BELOW = 0.8
"""Finished rows are removed from the batch once at most this share is still in progress, because every removal
copies the cache."""

LOOK_EVERY = 8
"""Steps between two reads of a GPU's tokens, because each read waits for the GPU; a processor's are read at
every step."""


@dataclass(frozen=True)
class Request:
    """Asks for `n` completions of each prompt; `stops` are the end tokens. `told` is called with the tokens of
    the first completion whenever they are read."""

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
    """Samples completions, returned as [prompt][completion], with the number of prompts that fitted into one
    pass. Starts with `prompts_per_pass` and halves it when memory runs out. Raises EngineError if not even one
    prompt fits, or if the logits are not finite."""
    random = np.random.default_rng(request.seed & (2**64 - 1))
    uniforms_PGT = random.random((len(request.prompts_P), request.n, request.max_tokens))
    results: list[list[Sampled]] = []

    def run(part: slice) -> None:
        results.extend(_run(request.prompts_P[part], uniforms_PGT[part], request, rollout(), on_gpu))

    used = MEMORY.retry_sampling(run, len(request.prompts_P), prompts_per_pass, request.n, request.max_tokens)
    return results, used


def _run(
    prompts_P: Sequence[list[int]], uniforms_PGT: Any, request: Request, rollout: Rollout, on_gpu: bool
) -> list[list[Sampled]]:
    """Samples some prompts in one pass."""
    rows, most = len(prompts_P) * request.n, request.max_tokens
    uniforms_RT = np.minimum(uniforms_PGT.reshape(rows, most), 1 - 2**-24).astype(np.float32)
    stops = np.array(sorted(request.stops))
    tokens_RT, logps_RT = np.zeros((rows, most), np.int64), np.zeros((rows, most), np.float32)
    place_R, stopped = np.arange(rows), np.zeros(rows, bool)
    unseen: list[tuple[int, mx.array, mx.array]] = []

    logits_RV = rollout.prefill(prompts_P, request.n, most)
    progress.add(sum(map(len, prompts_P)))
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
                progress.add(len(place_R))
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
    """Returns the tokens at the given quantiles of softmax(logits), and their log-probabilities in nats;
    `uniforms` are in [0, 1).

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
    """Cuts a row after its first end token."""
    ends = np.flatnonzero(np.isin(tokens_T, stops))
    length = int(ends[0]) + 1 if len(ends) else len(tokens_T)
    return tokens_T[:length].tolist(), logps_T[:length].tolist(), bool(len(ends))


class MlxDecoder:
    """Rows of one rollout, as `engines.contract.Decoder`."""

    joins = False

    def __init__(self, rollout: Rollout, rows: int) -> None:
        self._rollout, self.rows = rollout, rows

    def read(self, prompts_R: Sequence[Sequence[int]], more: int) -> NDArray[Any]:
        return np.array(self._rollout.prefill(prompts_R, 1, more))

    def advance(self, tokens_R: Sequence[int]) -> NDArray[Any]:
        return np.array(self._rollout.advance(mx.array(list(tokens_R))))

    def keep(self, rows_R: Sequence[int]) -> None:
        self._rollout.keep(list(rows_R))
