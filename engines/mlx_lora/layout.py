"""Arranges prompts and completions as padded blocks: each distinct prompt once, completions after their
prompts.

Completions of similar length share a block, because most answers are short and a few reach the limit: a single
block would be mostly padding, and took four times as long. Sizes: P distinct prompts of L tokens, S completions
that feed F tokens, K = L + F keys, C predicted tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mlx.core as mx
import numpy as np

from engines.batches import Tokens

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
