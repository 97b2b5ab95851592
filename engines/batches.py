"""Validates training rows and splits a batch into micro-batches, for every engine's learner.

A prompt is computed once for all completions that follow it, so a micro-batch holds whole groups where they
fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from engines.contract import Batch, EngineError, Row, StepStats, progress

Tokens = list[int]
Done = TypeVar("Done")
CHUNK_VALUES = 2**24
"""Maximum logits computed at a time: 64 MB in fp32."""
NO_STEP = StepStats(loss=0.0, grad_norm=0.0, rows=0, tokens=0, micro_batches=0, seconds=0.0)
"""The result of a step on a batch in which no row has a non-zero weight."""


@dataclass
class BatchLimits:
    """Maximum tokens of a micro-batch, and whether layers are recomputed (`checkpointing`). The limits only
    ever decrease."""

    tokens: int
    checkpointing: bool = False

    @classmethod
    def for_memory(
        cls, free_bytes: int, most: int, token_bytes: int, token_bytes_recomputed: int
    ) -> BatchLimits:
        """Returns limits for which activations use at most half of the free memory. Layers are recomputed if
        fewer than 1024 tokens (or `most`) fit otherwise. The `token_bytes` are bytes per token without and with
        recomputing.

        >>> BatchLimits.for_memory(4 * 2**20, 2048, 1024, 128), BatchLimits.for_memory(2**20, 2048, 1024, 128)
        (BatchLimits(tokens=2048, checkpointing=False), BatchLimits(tokens=2048, checkpointing=True))
        """
        tokens = int(free_bytes * 0.5 / token_bytes)
        if tokens >= min(1024, most):
            return cls(min(most, tokens))
        return cls(max(1, min(most, int(free_bytes * 0.5 / token_bytes_recomputed))), checkpointing=True)

    def step_down(self) -> str | None:
        """Lowers the limits by one step and returns the sentence that reports it; None if they cannot get
        lower."""
        if self.tokens > 256:
            self.tokens //= 2
            return f"Memory ran short: it now learns from {self.tokens} tokens at a time."
        if not self.checkpointing:
            self.checkpointing = True
            return "Memory ran short: it now computes layers twice instead of keeping them."
        return None


@dataclass(frozen=True)
class MemoryRecovery:
    """Retries work after out-of-memory errors. `ran_out` recognises the engine's errors, `release` frees its
    cached memory."""

    ran_out: Callable[[Exception], bool]
    release: Callable[[], None]

    def retry_learning(
        self, work: Callable[[], Done], limits: BatchLimits, notice: Callable[[str], None]
    ) -> Done:
        """Runs `work`, and retries it with lower limits when memory runs out; `notice` gets a sentence each
        time. Raises EngineError when the limits cannot be lowered further."""
        while True:
            try:
                return work()
            except (RuntimeError, MemoryError) as error:
                if not self.ran_out(error):
                    raise
                sentence = limits.step_down()
                if sentence is None:
                    raise EngineError(
                        "Learning doesn't fit into the memory: choose a smaller model or shorter answers."
                    ) from error
                notice(sentence)
            self.release()

    def retry_sampling(
        self, work: Callable[[slice], None], prompts: int, at_once: int, n: int, max_tokens: int
    ) -> int:
        """Runs `work` on slices of the prompts, at first `at_once` prompts, half as many whenever memory runs
        out. Returns the last slice size. Raises EngineError if not even one prompt fits."""
        size, first = max(1, at_once), 0
        while first < prompts:
            try:
                work(slice(first, first + size))
                first += size
                continue
            except (RuntimeError, MemoryError) as error:
                if not self.ran_out(error):
                    raise
                if size == 1:
                    raise EngineError(
                        f"{n} completions of {max_tokens} tokens don't fit into the free memory: "
                        "choose a smaller model, fewer completions or shorter ones."
                    ) from error
            size //= 2
            self.release()
        return size


def check_finite(loss: float, norm: float) -> None:
    """Raises EngineError if loss or gradient norm is not finite, so that the step cannot corrupt the
    adapter."""
    if not (math.isfinite(loss) and math.isfinite(norm)):
        raise EngineError(
            f"The step wasn't made, because its loss ({loss}) or gradient ({norm}) isn't a finite number: "
            "go back to an earlier checkpoint if this comes again."
        )


def step_stats(
    rows: Sequence[Row],
    loss: float,
    norm: float,
    pieces: int,
    apart: Sequence[float],
    nats_S: Sequence[float],
    seconds: float,
) -> StepStats:
    """Builds the statistics of a step. `apart` holds the sum of |learner's - sampler's| log-probs (nats), the
    number of tokens at the cap, and the number of tokens counted; `nats_S` the rows' nats."""
    distance, capped, sampled = apart
    return StepStats(
        loss=loss,
        grad_norm=norm,
        rows=len(rows),
        tokens=sum(len(row.completion_T) for row in rows),
        micro_batches=pieces,
        seconds=seconds,
        mismatch=distance / sampled if sampled else None,
        capped=capped / sampled if sampled else None,
        nats_S=tuple(nats_S),
    )


def nats_by_row(logps_C: Sequence[float], lengths: Sequence[int]) -> list[float]:
    """Returns the nats of each row from the log-probabilities of all rows' tokens, one row after another.

    >>> nats_by_row([-1.0, -0.5, -2.0], [2, 1])
    [1.5, 2.0]
    """
    found = iter(logps_C)
    return [-sum(islice(found, length)) for length in lengths]


def logprobs_in_micro_batches(
    sequences_S: Sequence[tuple[Tokens, Tokens]],
    tokens: int,
    logprobs: Callable[[list[tuple[Tokens, Tokens]], list[int]], list[float]],
    shared: bool = True,
) -> list[list[float]]:
    """Returns the log-probabilities of every completion's tokens, computed in micro-batches. `logprobs`
    computes those of one micro-batch from its sequences and their completions' tokens in one list. `shared` as
    in `micro_batches`."""
    results: list[list[float]] = [[] for _ in sequences_S]
    filled = [index for index, (_, completion) in enumerate(sequences_S) if completion]
    for piece in micro_batches([sequences_S[index] for index in filled], tokens, shared):
        part = [sequences_S[filled[index]] for index in piece]
        tokens_C = [token for _, completion in part for token in completion]
        found = iter(logprobs(part, tokens_C))
        progress.add(len(tokens_C))
        for index in piece:
            results[filled[index]] = list(islice(found, len(sequences_S[filled[index]][1])))
    return results


def weighted_rows(batch: Batch, vocabulary: int) -> list[Row]:
    """Returns the rows with a non-zero weight. Raises EngineError for rows that cannot be trained on."""
    if not (math.isfinite(batch.learning_rate) and batch.learning_rate >= 0):
        raise EngineError(f"The learning rate {batch.learning_rate} isn't a number of at least 0: set another.")
    rows = []
    for row in batch.rows_S:
        lengths = {len(row.completion_T), len(row.weights_T)}
        earlier = [given for given in (row.old_logprobs_T, row.sampler_logprobs_T) if given is not None]
        lengths.update(map(len, earlier))
        if len(lengths) > 1:
            raise EngineError(
                "A training row has another number of weights than tokens: drop it from the batch."
            )
        if not all(math.isfinite(value) for values in (row.weights_T, *earlier) for value in values):
            raise EngineError("A training row has a weight that isn't a finite number: drop it from the batch.")
        if any(row.weights_T):
            rows.append(row)
    check_tokens([(row.prompt_T, row.completion_T) for row in rows], vocabulary)
    return rows


def check_tokens(sequences_S: Sequence[tuple[Tokens, Tokens]], vocabulary: int) -> None:
    """Raises EngineError for an empty prompt or a token id outside the vocabulary."""
    for prompt, completion in sequences_S:
        if not prompt:
            raise EngineError("A training sequence has an empty prompt: drop it from the batch.")
        if min(prompt) < 0 or max(prompt) >= vocabulary or any(not 0 <= t < vocabulary for t in completion):
            raise EngineError(
                "A training sequence holds token ids of another tokenizer: encode its text again."
            )


def logit_chunks(rows: int, vocabulary: int) -> list[slice]:
    """Returns slices of rows whose logits fit into CHUNK_VALUES."""
    size = max(1, CHUNK_VALUES // vocabulary)
    return [slice(start, start + size) for start in range(0, rows, size)]


def packed_tokens(sequences_S: Sequence[tuple[Tokens, Tokens]]) -> int:
    """Returns the number of tokens in a forward pass over these sequences: each distinct prompt once, and each
    completion without its last token, which is only predicted."""
    prompts = {tuple(prompt) for prompt, _ in sequences_S}
    return sum(map(len, prompts)) + sum(max(0, len(completion) - 1) for _, completion in sequences_S)


def micro_batches(rows_S: Sequence[tuple[Tokens, Tokens]], tokens: int, shared: bool = True) -> list[list[int]]:
    """Returns the row indices of each micro-batch: whole groups over one prompt where they fit, sorted by
    length. Each holds at most `tokens` computed tokens, or a single longer row. With `shared` a prompt is
    counted once per group, otherwise once per row.

    >>> micro_batches([([1], [2, 3]), ([7], [2] * 9), ([1], [4, 5])], 5)
    [[0, 2], [1]]
    >>> micro_batches([([1, 1], [2, 3]), ([1, 1], [4, 5])], 5, shared=False)
    [[0], [1]]
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, (prompt, _) in enumerate(rows_S):
        groups.setdefault(tuple(prompt) if shared else (index,), []).append(index)
    for group in groups.values():
        group.sort(key=lambda index: len(rows_S[index][1]))

    def longest(group: list[int]) -> tuple[int, int]:
        return len(rows_S[group[-1]][1]), len(rows_S[group[-1]][0])

    batches: list[list[int]] = []
    used = tokens + 1
    for group in sorted(groups.values(), key=longest):
        whole = packed_tokens([rows_S[index] for index in group])
        if used + whole <= tokens:
            batches[-1] += group
            used += whole
        elif whole <= tokens:
            batches.append(list(group))
            used = whole
        else:
            used = tokens + 1
            for index in group:
                more = max(0, len(rows_S[index][1]) - 1)
                if used + more <= tokens:
                    batches[-1].append(index)
                    used += more
                else:
                    batches.append([index])
                    used = len(rows_S[index][0]) + more
    return batches
