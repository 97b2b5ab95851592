"""The sampling loop over llama.cpp's sequences: finished rows leave, and waiting questions take their places.

Each question's prompt is read once and copied to the sequences of its completions. The random numbers of a
completion are fixed from the start, so its tokens do not depend on its neighbours or its place."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.contract import EngineError
from engines.llamacpp.model import Context
from engines.models.tokens import Sampled, Told

SUM_BLOCK = 512
"""Probabilities are first summed in blocks of this size; only the block that is hit is summed one by one."""


class TokenSampler:
    """Samples tokens from logits at temperature 1. Reuses its buffers: allocating them at each step would take
    as long as the computation."""

    def __init__(self, vocabulary: int) -> None:
        self.vocabulary = vocabulary
        self._starts = np.arange(0, vocabulary, SUM_BLOCK)
        self._work = np.empty((0, vocabulary), np.float32)

    def draw(
        self, logits_RV: NDArray[np.float32], uniforms_R: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Returns the tokens at the given quantiles of softmax(logits), and their log-probabilities in nats.

        `uniforms` are in [0, 1). Raises EngineError if the logits are not finite.

        >>> token, logp = TokenSampler(2).draw(np.zeros((1, 2), np.float32), np.array([0.6]))
        >>> token.tolist(), logp.round(4).tolist()
        ([1], [-0.6931])
        """
        rows, vocabulary = logits_RV.shape
        if len(self._work) < rows:
            self._work = np.empty((rows, vocabulary), np.float32)
        weights_RV = self._work[:rows]
        top_R = logits_RV.max(1)
        np.subtract(logits_RV, top_R[:, None], out=weights_RV)
        np.exp(weights_RV, out=weights_RV)
        sums_RB = np.add.reduceat(weights_RV, self._starts, axis=1).astype(np.float64)
        ends_RB = sums_RB.cumsum(1)
        total_R = ends_RB[:, -1]
        if not np.isfinite(total_R).all():
            raise EngineError(
                "The model produced numbers that aren't finite: go back to an earlier checkpoint."
            )
        wanted_R = uniforms_R * total_R
        block_R = np.minimum((ends_RB <= wanted_R[:, None]).sum(1), len(self._starts) - 1)
        each_R = np.arange(rows)
        left_R = wanted_R - (ends_RB - sums_RB)[each_R, block_R]
        columns_RC = self._starts[block_R][:, None] + np.arange(min(SUM_BLOCK, vocabulary))
        inside_RC = columns_RC < vocabulary
        columns_RC = np.minimum(columns_RC, vocabulary - 1)
        chances_RC = weights_RV[each_R[:, None], columns_RC].astype(np.float64) * inside_RC
        within_RC = chances_RC.cumsum(1)
        # Rounding may leave a quantile behind the block's sum: its last token with a chance then.
        last_R = chances_RC.shape[1] - 1 - (chances_RC[:, ::-1] > 0).argmax(1)
        place_R = np.minimum((within_RC <= left_R[:, None]).sum(1), last_R)
        token_R = columns_RC[each_R, place_R]
        logp_R = logits_RV[each_R, token_R].astype(np.float64) - top_R - np.log(total_R)
        return token_R, logp_R


@dataclass(frozen=True)
class QuestionRows:
    """Completions of one question that start together: rows [first, first + count) of all completions."""

    question: int
    first: int
    count: int


def split_questions(questions: int, n: int, places: int) -> Iterator[QuestionRows]:
    """Yields every question's `n` completions, split if there are more than `places` sequences.

    >>> [(piece.question, piece.first, piece.count) for piece in split_questions(2, 3, 2)]
    [(0, 0, 2), (0, 2, 1), (1, 3, 2), (1, 5, 1)]
    """
    for question in range(questions):
        for start in range(0, n, places):
            yield QuestionRows(question, question * n + start, min(places, n - start))


class DecoderRows:
    """The rows in progress, row r in sequence r. For each: the index of its completion, the token fed next, and
    that token's position."""

    def __init__(self) -> None:
        self.completion_R = np.zeros(0, np.int64)
        self.position_R = np.zeros(0, np.int64)
        self.token_R = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.completion_R)

    def add(self, completion_R: NDArray[np.int64], position: int, token_R: NDArray[np.int64]) -> None:
        self.completion_R = np.concatenate([self.completion_R, completion_R])
        self.position_R = np.concatenate([self.position_R, np.full(len(token_R), position)])
        self.token_R = np.concatenate([self.token_R, token_R])

    def keep(self, going_R: NDArray[np.bool_]) -> list[tuple[int, int]]:
        """Drops finished rows and fills the gaps with the last rows. Returns these moves as (from, to).
        llama.cpp computes sequences together only if their numbers are consecutive: with gaps, 26 rows took as
        long as 100."""
        left = int(going_R.sum())
        empty_E = np.flatnonzero(~going_R[:left])
        last_E = left + np.flatnonzero(going_R[left:])
        for array_R in (self.completion_R, self.position_R, self.token_R):
            array_R[empty_E] = array_R[last_E]
        self.completion_R, self.position_R = self.completion_R[:left], self.position_R[:left]
        self.token_R = self.token_R[:left]
        return list(zip(last_E.tolist(), empty_E.tolist(), strict=True))


class SampledSoFar:
    """The tokens of every completion so far."""

    def __init__(self, completions: int, max_tokens: int, stops: Sequence[int], vocabulary: int) -> None:
        self._tokens_CT = np.zeros((completions, max_tokens), np.int64)
        self._logps_CT = np.zeros((completions, max_tokens))
        self._length_C = np.zeros(completions, np.int64)
        self._finished_C = np.zeros(completions, np.bool_)
        self._is_stop_V = np.zeros(vocabulary, np.bool_)
        self._is_stop_V[[stop for stop in stops if stop < vocabulary]] = True
        self._max_tokens = max_tokens

    def length(self, completion_R: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._length_C[completion_R]

    def add(
        self, completion_R: NDArray[np.int64], token_R: NDArray[np.int64], logp_R: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Appends a token to each of these rows; returns which rows continue."""
        step_R = self._length_C[completion_R]
        self._tokens_CT[completion_R, step_R] = token_R
        self._logps_CT[completion_R, step_R] = logp_R
        self._length_C[completion_R] = step_R + 1
        stopped_R = self._is_stop_V[token_R]
        self._finished_C[completion_R] = stopped_R
        return ~stopped_R & (step_R + 1 < self._max_tokens)

    def so_far(self, completion: int) -> list[int]:
        """Returns the tokens of one completion."""
        tokens: list[int] = self._tokens_CT[completion, : self._length_C[completion]].tolist()
        return tokens

    def sampled(self) -> list[Sampled]:
        return [
            (
                self._tokens_CT[c, :length].tolist(),
                self._logps_CT[c, :length].tolist(),
                bool(self._finished_C[c]),
            )
            for c, length in enumerate(self._length_C.tolist())
        ]


def sample(
    context: Context,
    prompts_P: Sequence[Sequence[int]],
    uniforms_PGT: NDArray[np.float64],
    stops: Sequence[int],
    vocabulary: int,
    temperature: float = 1.0,
    told: Told | None = None,
) -> list[list[Sampled]]:
    """Samples completions, returned as [prompt][completion]; `uniforms` are the quantiles in [0, 1) of every
    token. `told` is called with the tokens of the first completion after every step. Raises EngineError if the
    logits are not finite or llama.cpp fails."""
    prompts, n, max_tokens = uniforms_PGT.shape
    uniforms_CT = uniforms_PGT.reshape(prompts * n, max_tokens)
    waiting = deque(split_questions(prompts, n, context.sequences))
    rows, record, drawer = (
        DecoderRows(),
        SampledSoFar(prompts * n, max_tokens, stops, vocabulary),
        TokenSampler(vocabulary),
    )
    context.clear()

    def take(going_R: NDArray[np.bool_]) -> None:
        if not going_R.all():
            for source, target in rows.keep(going_R):
                context.move(source, target)

    def draw(
        logits_RV: NDArray[np.float32], uniforms_R: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return drawer.draw(logits_RV if temperature == 1 else logits_RV / temperature, uniforms_R)

    while waiting or len(rows):
        while waiting and waiting[0].count <= context.sequences - len(rows):
            piece = waiting.popleft()
            prompt, before = prompts_P[piece.question], len(rows)
            logits = context.read(prompt, range(before, before + piece.count))
            completion_R = np.arange(piece.first, piece.first + piece.count)
            token_R, logp_R = draw(logits.repeat(piece.count, 0), uniforms_CT[completion_R, 0])
            rows.add(completion_R, len(prompt), token_R)
            going_R = record.add(completion_R, token_R, logp_R)
            take(np.concatenate([np.ones(before, np.bool_), going_R]))
        if told is not None and not told(record.so_far(0)):
            break
        if len(rows):
            logits = context.advance(rows.token_R, rows.position_R)
            step_R = record.length(rows.completion_R)
            rows.token_R, logp_R = draw(logits, uniforms_CT[rows.completion_R, step_R])
            rows.position_R += 1
            take(record.add(rows.completion_R, rows.token_R, logp_R))
    flat = record.sampled()
    return [flat[start : start + n] for start in range(0, prompts * n, n)]


class LlamaDecoder:
    """Rows in a llama.cpp context, as `engines.contract.Decoder`."""

    joins = True

    def __init__(self, context: Context) -> None:
        self._context, self.rows = context, context.sequences
        self._position_R = np.zeros(0, np.int64)
        context.forget_rows()

    def read(self, prompts_R: Sequence[Sequence[int]], more: int) -> NDArray[np.float32]:
        logits: list[NDArray[np.float32]] = []
        for prompt, alike in itertools.groupby(prompts_R):
            count, first = len(list(alike)), len(self._position_R)
            logits.append(self._context.read(prompt, range(first, first + count)).repeat(count, 0))
            self._position_R = np.concatenate([self._position_R, np.full(count, len(prompt))])
        return np.concatenate(logits)

    def advance(self, tokens_R: Sequence[int]) -> NDArray[np.float32]:
        logits = self._context.advance(np.asarray(tokens_R, np.int64), self._position_R)
        self._position_R += 1
        return logits

    def keep(self, rows_R: Sequence[int]) -> None:
        for target, source in enumerate(rows_R):
            if source != target:
                self._context.move(source, target)
        self._position_R = self._position_R[list(rows_R)]
