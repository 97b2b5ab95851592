"""llama.cpp's own limit: a bare loop of batched decoding, greedy, without an adapter or a tokenizer.

The prompt is decoded once and its cells are copied to every row, as our sampler does; then one batch of all
rows a token, and numpy's argmax. Nothing built on llama.cpp's batches can be faster.
"""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from app.bench import BenchError
from app.bench.engine.apart import ApartTask, Clock, Measured

CELLS = 256
"""Sequences have room in multiples of this."""


def sampling(task: ApartTask) -> Measured:
    from engines.models.gguf import gguf
    from engines.opening import available

    if reason := available("llamacpp"):
        raise BenchError(reason)
    import llama_cpp as api

    start = time.perf_counter()
    silent = api.llama_log_callback(lambda level, text, data: None)
    api.llama_log_set(silent, ctypes.c_void_p(0))
    api.llama_backend_init()
    kind: Any = task.candidate.split()[1]
    file = gguf.cached(Path(task.folder), kind, Path(os.environ["SHOAL_HOME"]) / "cache" / "gguf")
    model = api.llama_model_load_from_file(str(file).encode(), api.llama_model_default_params())
    if not model:
        raise BenchError(f"llama.cpp cannot open {file.name}: convert the model again.")
    prompt, rows = task.prompt_T, task.rows
    settings = api.llama_context_default_params()
    settings.n_seq_max = rows
    settings.n_ctx = rows * -(-(len(prompt) + task.new) // CELLS) * CELLS
    settings.n_batch = settings.n_ubatch = max(512, len(prompt), rows)
    settings.n_threads = settings.n_threads_batch = task.threads
    settings.kv_unified = False
    context = api.llama_init_from_model(model, settings)
    if not context:
        raise BenchError("llama.cpp finds no memory for the rows: take fewer.")
    memory = api.llama_get_memory(context)
    vocabulary = api.llama_vocab_n_tokens(api.llama_model_get_vocab(model))
    batch = api.llama_batch_init(max(len(prompt), rows), 0, 1)
    loading = time.perf_counter() - start

    def decode(tokens: list[int], sequences: list[int], positions: list[int], wanted: list[bool]) -> None:
        batch.n_tokens = len(tokens)
        for index, token in enumerate(tokens):
            batch.token[index] = token
            batch.pos[index] = positions[index]
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = sequences[index]
            batch.logits[index] = wanted[index]
        if code := api.llama_decode(context, batch):
            raise BenchError(f"llama.cpp could not decode (code {code}): take fewer rows.")

    def best(count: int) -> list[int]:
        logits = np.ctypeslib.as_array(api.llama_get_logits(context), shape=(count, vocabulary))
        return [int(token) for token in logits.argmax(1)]

    def generate(new: int) -> None:
        api.llama_memory_clear(memory, True)
        last = len(prompt) - 1
        decode(prompt, [0] * len(prompt), list(range(len(prompt))), [at == last for at in range(len(prompt))])
        tokens = best(1) * rows
        for row in range(1, rows):
            api.llama_memory_seq_cp(memory, 0, row, -1, -1)
        for position in range(len(prompt), len(prompt) + new - 1):
            decode(tokens, list(range(rows)), [position] * rows, [True] * rows)
            tokens = best(rows)

    generate(3)
    clock = Clock()
    generate(task.new)
    return Measured(
        seconds=clock.wall(),
        cpu_s=clock.cpu(),
        tokens=rows * task.new,
        load_s=loading,
        note="greedy, no adapter",
    )
