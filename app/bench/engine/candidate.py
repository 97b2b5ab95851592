"""One candidate of a benchmark, in the process that is its own: `python -m app.bench.engine.candidate TASK`.

Prints what it took as one JSON object. Whatever it needs is loaded and warmed up before the clock starts.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil

from app.bench import BenchError
from app.bench.engine.apart import ApartTask, Measured


def main(arguments: list[str]) -> int:
    task = msgspec.json.decode(arguments[0], type=ApartTask)
    from engines.contract import EngineError
    from engines.opening import instructions

    try:
        with contextlib.redirect_stdout(sys.stderr):
            measured = work(task)(task)
    except (BenchError, EngineError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1
    measured = msgspec.structs.replace(measured, peak_mb=peak_mb(), instructions=instructions())
    print(msgspec.json.encode(measured).decode())
    return 0


def work(task: ApartTask) -> Callable[[ApartTask], Measured]:
    """The function that a candidate's name stands for."""
    from app.bench.engine import ours, peers, plain_llamacpp

    kind = task.candidate.split()[0]
    functions: dict[tuple[str, str], Callable[[ApartTask], Measured]] = {
        ("sampler", "torch"): ours.sampling,
        ("sampler", "llamacpp"): ours.sampling,
        ("sampler", "transformers"): peers.sampling,
        ("sampler", "llama.cpp"): plain_llamacpp.sampling,
        ("learner", "torch"): ours.learning,
        ("learner", "naive"): peers.learning,
        ("learner", "trl"): peers.learning_with_trl,
        ("round", "torch"): ours.round_,
        ("round", "llamacpp"): ours.round_,
        ("round", "trl"): peers.round_,
    }
    return functions[task.part, kind]


def peak_mb() -> float:
    """The most memory this process has held so far. Linux counts it again for each program it starts, where
    getrusage would still know the parent's."""
    with contextlib.suppress(OSError, AttributeError):
        if found := re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text()):
            return int(found[1]) / 1024
    if os.name == "nt":
        return float(psutil.Process().memory_info().peak_wset) / 2**20
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
