"""One candidate of a benchmark, in its own process: `python -m app.bench.engine.candidate TASK`. Our own
engines are called as nodes call them: sampling, one step, and a whole round.

Prints its figures as one JSON object. Everything is loaded and warmed up before the clock starts."""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil

from app.bench.engine.apart import ApartTask, Clock
from app.bench.engine.shapes import RANK
from app.bench.harness import BenchError, Figures
from engines.contract import Batch, Completion, Engine, EngineError, Row
from engines.opening import open_engine, why_unavailable


def main(arguments: list[str]) -> int:
    task = msgspec.json.decode(arguments[0], type=ApartTask)
    from app.bench.engine import peers
    from engines.opening import instructions

    measure = {
        ("sampler", "torch"): measure_sampling,
        ("sampler", "llamacpp"): measure_sampling,
        ("sampler", "transformers"): peers.sampling,
        ("sampler", "llama.cpp"): peers.sampling_with_llamacpp,
        ("learner", "torch"): measure_step,
        ("learner", "trl"): peers.learning_with_trl,
        ("round", "torch"): measure_round,
        ("round", "llamacpp"): measure_round,
        ("round", "trl"): peers.round_,
    }[task.part, task.candidate.split()[0]]
    try:
        with contextlib.redirect_stdout(sys.stderr):
            measured = measure(task)
    except (BenchError, EngineError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1
    measured |= {"peak_mb": peak_mb(task.device), "instructions": instructions()}
    print(msgspec.json.encode(measured).decode())
    return 0


def peak_mb(device: str = "cpu") -> float:
    """Peak memory of this process in MB; on a GPU, the memory that torch reserved there. Read from /proc on
    Linux, where getrusage may return the parent's peak."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.max_memory_reserved(device) / 2**20
    with contextlib.suppress(OSError, AttributeError):
        if found := re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text()):
            return int(found[1]) / 1024
    if os.name == "nt":
        return float(psutil.Process().memory_info().peak_wset) / 2**20
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)


RATE = 1e-5


def opened(task: ApartTask) -> tuple[Engine, float]:
    """Opens an engine with the task's adapter; returns it and the seconds that took. The candidate's second
    word is the file type of llama.cpp's sampler; without it, the app's default is used."""
    kind, *more = task.candidate.split()
    start = time.perf_counter()
    if kind == "llamacpp":
        if reason := why_unavailable(kind):
            raise EngineError(reason)
        package: Any = importlib.import_module("engines.llamacpp")
        number_format = more[0] if more else None
        engine: Engine = package.open_engine(task.folder, rank=RANK, threads=task.threads, kind=number_format)
    else:
        engine = open_engine(kind, task.folder, rank=RANK, threads=task.threads, device=task.device)
    engine.load(Path(task.adapter))
    return engine, time.perf_counter() - start


def measure_sampling(task: ApartTask) -> Figures:
    engine, loading = opened(task)
    engine.sample([task.messages], task.rows, 2, 1)
    clock = Clock()
    groups = engine.sample([task.messages], task.rows, task.new, 2)
    return clock.figures(_tokens(groups[0]), load_s=loading, note=engine.info.dtype)


def measure_step(task: ApartTask) -> Figures:
    """Measures one step on random completions. "checkpointing" forces what the engine otherwise chooses."""
    engine, loading = opened(task)
    limits = engine._base.learner.limits  # type: ignore[attr-defined]  # no owner ever sets this
    if "checkpointing" in task.candidate:
        limits.checkpointing = True
    drawn = random.Random(3)
    rows = [[drawn.randrange(task.vocabulary) for _ in range(task.new)] for _ in range(task.rows)]
    engine.step(_batch(task, [row[:4] for row in rows[:2]]))
    clock = Clock()
    stats = engine.step(_batch(task, rows))
    note = f"{stats.micro_batches} micro-batches{', layers computed twice' if limits.checkpointing else ''}"
    return clock.figures(stats.tokens, load_s=loading, note=note)


def measure_round(task: ApartTask) -> Figures:
    """Samples a group and makes one step on it."""
    engine, loading = opened(task)
    warm = engine.sample([task.messages], task.rows, 2, 1)[0]
    engine.step(_batch(task, [completion.tokens_T for completion in warm[:2]]))
    clock = Clock()
    group = engine.sample([task.messages], task.rows, task.new, 2)[0]
    sampled = clock.wall()
    mu = [completion.logprobs_T for completion in group] if engine.info.sampler else None
    engine.step(_batch(task, [completion.tokens_T for completion in group], mu))
    found = clock.figures(_tokens(group), load_s=loading, note=engine.info.sampler or engine.info.dtype)
    return found | {"sample_s": sampled, "step_s": found["seconds"] - sampled}


def _tokens(group: Sequence[Completion]) -> int:
    return sum(len(completion.tokens_T) for completion in group)


def _batch(task: ApartTask, completions: Sequence[list[int]], mu: Sequence[list[float]] | None = None) -> Batch:
    """Builds a batch in which every other row is rewarded, so half the advantages are 1 and half -1."""
    tokens = sum(map(len, completions))
    rows = [
        Row(
            prompt_T=task.prompt_T,
            completion_T=completion,
            weights_T=[(1.0 if index % 2 else -1.0) / tokens] * len(completion),
            sampler_logprobs_T=mu[index] if mu else None,
        )
        for index, completion in enumerate(completions)
    ]
    return Batch(rows_S=rows, learning_rate=RATE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
