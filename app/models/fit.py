"""Says whether a model fits this computer, and how long a round usually takes here.

`memory_and_fit` answers the first question from the model's shape and this computer's memory and disk. Its
formulas are the engines' own memory accounting (engines.torch_lora: weights, the merged copy for sampling,
the KV cache, the activations of a micro-batch, LoRA with its optimiser; tests compare the two), plus what a
trainer needs besides. `usual_round_s` answers the second, from one table of measured speeds; `./shoal trial`
measures this computer itself. Which engine is used is decided elsewhere (engines.choice). Loads no model
library."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Literal

import msgspec
import psutil

from engines.choice import SAMPLER_BYTES, sampler_kind
from engines.container import memory_left
from engines.facts import LARGE_PARAMETERS, features, free_ram, has_native_bf16, has_nvidia_driver
from engines.files import DISK_SPARE, in_bytes
from engines.models.folder import Shape

Dtype = Literal["float32", "bfloat16"]
ITEMSIZE: dict[Dtype, int] = {"float32": 4, "bfloat16": 2}

COMPLETIONS_PER_GROUP = 8
PROMPT_TOKENS = 256
"""Tokens of a long puzzle prompt, including the chat template."""
MIN_TOKENS, GOOD_TOKENS = 256, 1024
"""Tokens of a micro-batch: the smallest the learner steps down to, and the size it uses when memory is
plentiful."""
ACTIVATION_SHARE = 0.5
"""Share of the memory left after the weights that the learner gives to a micro-batch."""
TRAINER_BASE_BYTES = 340_000_000
"""Bytes that a trainer needs before it loads a model: Python with torch and llama.cpp. With the starter model a
trainer was measured at 411 MB in all."""
CACHE_ROWS = 64
"""Maximum answers of a round whose KV cache llama.cpp holds at a time; the cache is also limited to _KEYS
bytes."""
_KEYS, _TOKENS = 640 << 20, 256
SAFETY_FACTOR = 1.15
"""Factor on the sum of the parts: SmolLM2 135M used 1.94 GB where the parts sum to 2.2, and a model of 0.5
billion parameters 4.9 where they sum to 4.3."""


class MemoryNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """A model's needs in bytes. `least`: minimum to run at all, recomputing layers. `learning`: free memory
    needed to run at full speed. `takes`: memory in use then. `disk`: bytes still to be written."""

    least: int
    learning: int
    takes: int = 0
    disk: int = 0


def needs(
    shape: Shape,
    dtype: Dtype,
    *,
    stored_parameters: int | None = None,
    rank: int = 16,
    max_tokens: int = 96,
    disk: int = 0,
) -> MemoryNeeds:
    """Returns the memory a model needs in the number format `dtype`. `stored_parameters` is the number of
    parameters in its files, if that exceeds the model's own."""
    size = ITEMSIZE[dtype]
    stored = max(stored_parameters or 0, shape.parameters)
    merged = stored < LARGE_PARAMETERS
    weights = (shape.parameters + (shape.linear_parameters if merged else 0)) * size
    adapter = 16 * shape.adapter_parameters(rank)
    sampling = weights + adapter + COMPLETIONS_PER_GROUP * shape.row_bytes(PROMPT_TOKENS + max_tokens, size)

    def learning(tokens: int, checkpointing: bool) -> int:
        return weights + adapter + int(tokens * shape.token_bytes(checkpointing, size) / ACTIVATION_SHARE)

    # the learner's own bounds on a processor (engines.torch_lora.learner)
    micro_batch = min(GOOD_TOKENS * shape.token_bytes(False, size), max(2**29, weights // 2))
    opening = int((2 if merged else 1.5) * stored * size)  # with less the engine refuses to open it
    return MemoryNeeds(
        least=max(opening, sampling, learning(MIN_TOKENS, checkpointing=True)),
        learning=max(opening, sampling, learning(GOOD_TOKENS, checkpointing=False)),
        takes=max(weights + adapter + micro_batch, sampling),
        disk=disk,
    )


class FitVerdict(StrEnum):
    FITS = "fits"
    TIGHT = "tight"
    """The model runs, but recomputes layers instead of keeping them."""
    CROWDED = "crowded"
    """The model would fit, but other programs use too much memory now."""
    TOO_LARGE = "too large"
    NO_DISK = "no disk"


class MemoryRoom(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of memory that an engine may use: now (`free`), and if no other program were open (`most`)."""

    free: int
    most: int


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict, and a sentence for the user."""

    verdict: FitVerdict
    sentence: str


def assess_fit(model: MemoryNeeds, memory: MemoryRoom, disk_free: int) -> Fit:
    """Returns how a model with these needs fits into this memory and disk space.

    >>> small, large = (MemoryNeeds(least=n, learning=4) for n in (3, 8 * 10**9))
    >>> assess_fit(small, MemoryRoom(free=10**9, most=10**9), 10**12).verdict.value
    'fits'
    >>> assess_fit(large, MemoryRoom(free=10**9, most=2 * 10**9), 0).sentence
    'It needs 8.0 GB of memory, and this computer can give 2.0 GB.'
    """
    if model.least > memory.most:
        verdict = FitVerdict.TOO_LARGE
        said = (
            f"It needs {in_bytes(model.least)} of memory, and this computer can give {in_bytes(memory.most)}."
        )
    elif model.disk and model.disk + DISK_SPARE > disk_free:
        verdict = FitVerdict.NO_DISK
        said = (
            f"It takes {in_bytes(model.disk)} of disk, and {in_bytes(disk_free)} are free: free up some space."
        )
    elif model.least > memory.free:
        verdict = FitVerdict.CROWDED
        said = (
            f"It needs {in_bytes(model.least)} of memory, and {in_bytes(memory.free)} are free now: close "
            "other programs."
        )
    elif model.learning > memory.free:
        verdict = FitVerdict.TIGHT
        said = (
            f"It runs, though slower: {in_bytes(model.learning)} of memory would be good, "
            f"{in_bytes(memory.free)} are free."
        )
    else:
        verdict = FitVerdict.FITS
        takes = in_bytes(model.takes or model.learning)
        said = f"It fits: it takes {takes} of memory, and {in_bytes(memory.free)} are free."
    return Fit(verdict=verdict, sentence=said)


def memory_here() -> MemoryRoom:
    """Returns what an engine may use of this computer's main memory, ignoring the memory of graphics cards."""
    share = free_ram() / max(1, min(psutil.virtual_memory().available, memory_left()))
    return MemoryRoom(free=free_ram(), most=int(psutil.virtual_memory().total * share))


def likely_dtype(cpuinfo: Path = Path("/proc/cpuinfo")) -> Dtype:
    """Returns the number format in which the processor most likely computes: bf16 only if it has instructions
    for it. The engine measures before it decides (engines.torch_lora.network.device)."""
    return "bfloat16" if has_native_bf16(features(cpuinfo)) else "float32"


class ComputerRoom(msgspec.Struct, frozen=True, kw_only=True):
    """The resources of this computer for a model: memory, the number format it computes in, and free disk
    bytes."""

    memory: MemoryRoom
    dtype: Dtype
    disk: int


def memory_and_fit(
    shape: Shape, room: ComputerRoom, stored: int, max_tokens: int, missing: int
) -> tuple[int, Fit]:
    """Returns the bytes of memory that a trainer uses with this model, and whether it fits. `stored` is the
    number of parameters in its files, `missing` the bytes that are not downloaded yet."""
    found = needs(shape, room.dtype, stored_parameters=stored, max_tokens=max_tokens, disk=missing)
    copy = int(SAMPLER_BYTES[sampler_kind(shape.parameters)] * shape.parameters)
    keys = min(_KEYS, CACHE_ROWS * shape.row_bytes(_TOKENS, 2))
    takes = int(SAFETY_FACTOR * (found.takes + copy + keys + TRAINER_BASE_BYTES))
    found = msgspec.structs.replace(found, learning=found.learning + copy, takes=takes)
    left = MemoryRoom(
        free=max(0, room.memory.free - TRAINER_BASE_BYTES),
        most=max(0, room.memory.most - TRAINER_BASE_BYTES),
    )
    return takes, assess_fit(found, left, room.disk)


ROUND_SECONDS: dict[str, tuple[float, float]] = {"cuda": (0.4, 1.3), "bf16": (3.0, 7.8), "plain": (3.0, 17.4)}
"""Seconds of a round of the starter and of SmolLM2 135M by class of machine, each the slowest of a few measured
medians (app/lab/LOG.md): an H200; two cores of a processor with bf16 instructions; two cores with AVX2. There
is none for Apple Silicon."""
_SMALL, _LARGE = 1.6e6, 135e6
"""Parameters of these two models. The smaller one's pace says little of others: most of it is no arithmetic."""
_CORES, _MAX_CORES = 2, 8
"""Cores of the processors in the table, and how many count at most: more bring little."""


def machine_class() -> str:
    """Returns this computer's class in `ROUND_SECONDS`; "" if none was measured. Looks at files only."""
    if sys.platform == "darwin":
        return ""
    if has_nvidia_driver():
        return "cuda"
    return "bf16" if has_native_bf16(features()) else "plain"


def usual_round_s(parameters: int, machine: str, cores: int) -> float | None:
    """Returns the seconds of a round of a model of this size on such a machine: on the line through the two
    that were measured, with more cores in proportion. None for a machine of no known class.

    >>> usual_round_s(135_000_000, "bf16", 2), usual_round_s(494_000_000, "plain", 8), usual_round_s(1, "", 2)
    (7.8, 14.0, None)
    """
    if machine not in ROUND_SECONDS:
        return None
    small, large = ROUND_SECONDS[machine]
    more = 1.0 if machine == "cuda" else _CORES / min(cores, _MAX_CORES)
    return round(more * (small + (large - small) * (parameters - _SMALL) / (_LARGE - _SMALL)), 1)


def expected_round_s(models: Sequence[tuple[int, float | None]], machine: str, cores: int) -> dict[int, float]:
    """Returns the seconds of a round by number of parameters, for `models` of (parameters, seconds measured
    here or None), as far as they are known. A model that was not measured takes its usual time, in the
    proportion of the largest smaller one that was; and none is expected to be slower than a larger one.

    >>> expected_round_s([(135_000_000, 15.6), (360_000_000, None)], "bf16", 2)
    {135000000: 15.6, 360000000: 31.8}
    >>> expected_round_s([(135_000_000, 20.0), (360_000_000, 12.0), (1_600_000, None)], "bf16", 2)
    {1600000: 3.0, 135000000: 12.0, 360000000: 12.0}
    """
    found: dict[int, float] = {}
    ratio, slowest = 1.0, 0.0
    for parameters, played in sorted(models, key=lambda model: (model[0], model[1] or 0.0)):
        usual = usual_round_s(parameters, machine, cores)
        if played:
            slowest = max(slowest, played)
            ratio = played / usual if usual and parameters >= _LARGE / 2 else ratio
        if seconds := played or (max(slowest, round(ratio * usual, 1)) if usual else None):
            found[parameters] = seconds
    least = math.inf
    for parameters in sorted(found, reverse=True):
        found[parameters] = least = min(least, found[parameters])
    return found
