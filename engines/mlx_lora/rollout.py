"""A batch of completions under way: each prompt is read once, its keys and values are repeated for its rows.

Prompts lie at columns [0, longest prompt) and what is generated behind them, so a step writes one column for
all rows; behind shorter prompts masked columns remain, and each row turns its heads by its own position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from engines.mlx_lora.network import Network

PREFILL_TOKENS = 4096
"""Prompt tokens read at once; more would only make the activations larger."""


class PromptCache:
    """What mlx-lm's attention asks of a cache, for a prompt: keeps its keys and values."""

    def __init__(self) -> None:
        self.offset = 0

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        self.keys, self.values = keys, values
        return keys, values


class Writing:
    """One layer's cache while completions grow, (R, heads, columns, width); `offset` is each row's position."""

    def __init__(self, keys: mx.array, values: mx.array, offset: mx.array, column: int) -> None:
        self.keys, self.values = keys, values
        self.offset, self.column = offset, column

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        used = self.column + 1
        self.keys[:, :, self.column : used] = keys
        self.values[:, :, self.column : used] = values
        return self.keys[:, :, :used], self.values[:, :, :used]


class Rollout:
    """Completions of one decoder, `n` for each prompt; rows are in the prompts' order."""

    def __init__(self, network: Network, decoder: Any) -> None:
        self._network = network
        self._decoder = decoder

    def prefill(self, prompts_P: Sequence[Sequence[int]], n: int, max_tokens: int) -> mx.array:
        """Reads the prompts. Logits of the first token, (P * n, V) fp32."""
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
            self._caches.append(Writing(keys, values, position_R, longest))
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
        """Appends one token to every row. Logits of the next, (R, V) fp32, not computed yet."""
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
        """Computes now what the caches hold, so that their old arrays are freed."""
        mx.eval(*arrays, [(cache.keys, cache.values) for cache in self._caches])


def _repeated(parts: Sequence[mx.array], n: int, more: int) -> mx.array:
    """Prompts' keys or values (P, heads, L, width), each `n` times, with room for `more` columns."""
    whole = parts[0] if len(parts) == 1 else mx.concatenate(list(parts))
    return mx.pad(mx.repeat(whole, n, axis=0), [(0, 0), (0, 0), (0, more), (0, 0)])
