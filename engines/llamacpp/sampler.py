"""The sampling loop over llama.cpp's sequences: finished rows leave, waiting questions take their places.

Each question's prompt is read once and copied to the sequences of its completions. The numbers that decide a
completion's tokens are its own from the start, so neither neighbours nor the order of places change its tokens.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.llamacpp.draw import Drawer
from engines.llamacpp.model import Context
from engines.text import Sampled, Told


@dataclass(frozen=True)
class QuestionRows:
    """Completions of one question that start together: rows [first, first + count) of all completions."""

    question: int
    first: int
    count: int


def pieces(questions: int, n: int, places: int) -> Iterator[QuestionRows]:
    """Every question's `n` completions, cut where they are more than there are places.

    >>> [(piece.question, piece.first, piece.count) for piece in pieces(2, 3, 2)]
    [(0, 0, 2), (0, 2, 1), (1, 3, 2), (1, 5, 1)]
    """
    for question in range(questions):
        for start in range(0, n, places):
            yield QuestionRows(question, question * n + start, min(places, n - start))


class DecoderRows:
    """The rows under way: completion, position of the token fed next, that token. Row r is in sequence r."""

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
        """Drops rows; the last ones take the places that fall empty. Gives these moves as (from, to).

        llama.cpp computes sequences together only where their numbers follow one another: with gaps, 26 rows
        took as long as 100."""
        left = int(going_R.sum())
        empty_E = np.flatnonzero(~going_R[:left])
        last_E = left + np.flatnonzero(going_R[left:])
        for array_R in (self.completion_R, self.position_R, self.token_R):
            array_R[empty_E] = array_R[last_E]
        self.completion_R, self.position_R = self.completion_R[:left], self.position_R[:left]
        self.token_R = self.token_R[:left]
        return list(zip(last_E.tolist(), empty_E.tolist(), strict=True))


class SampledSoFar:
    """What every completion has so far; `add` says which of the rows go on."""

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
        step_R = self._length_C[completion_R]
        self._tokens_CT[completion_R, step_R] = token_R
        self._logps_CT[completion_R, step_R] = logp_R
        self._length_C[completion_R] = step_R + 1
        stopped_R = self._is_stop_V[token_R]
        self._finished_C[completion_R] = stopped_R
        return ~stopped_R & (step_R + 1 < self._max_tokens)

    def so_far(self, completion: int) -> list[int]:
        """Its tokens."""
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
    """Completions as [prompt][completion]; `uniforms` are the quantiles in [0, 1) of every token. `told` hears
    the tokens of the first completion after every step.

    Raises EngineError when the logits are not finite or llama.cpp fails."""
    prompts, n, max_tokens = uniforms_PGT.shape
    uniforms_CT = uniforms_PGT.reshape(prompts * n, max_tokens)
    waiting = deque(pieces(prompts, n, context.sequences))
    rows, record, drawer = (
        DecoderRows(),
        SampledSoFar(prompts * n, max_tokens, stops, vocabulary),
        Drawer(vocabulary),
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
