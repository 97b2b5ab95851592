"""Estimates whether a model fits this computer, and how many rounds per hour it will do.

`judge` answers the first question from the model's shape and this computer's memory and disk. Its formulas are
the engines' own memory accounting (engines.torch_lora: weights, the merged copy for sampling, the KV cache, the
activations of a micro-batch, LoRA with its optimiser; tests compare the two), plus what a trainer needs
besides. `seconds_of_round` answers the second: the measured value if there is one, else a range, from rounds of
other models on this computer or from the model's size. app.node.models.trial measures both in some seconds.
Which engine is used is decided elsewhere (engines.choice). Loads no model library."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Literal

import msgspec
import psutil

from engines.choice import SAMPLER_BYTES, sampler_kind
from engines.facts import container_memory_left, features, free_ram, has_native_bf16
from engines.files import DISK_SPARE, in_bytes
from engines.models.folder import Shape

Dtype = Literal["float32", "bfloat16"]
ITEMSIZE: dict[Dtype, int] = {"float32": 4, "bfloat16": 2}

COMPLETIONS = 8
PROMPT_TOKENS = 256
"""Tokens of a long puzzle prompt, including the chat template."""
MIN_TOKENS, GOOD_TOKENS = 256, 1024
"""Tokens of a micro-batch: the smallest the learner steps down to, and the size it uses when memory is
plentiful."""
ACTIVATION_SHARE = 0.5
"""Share of the memory left after the weights that the learner gives to a micro-batch."""
MERGED_BELOW = 50 * 10**6
"""Number of parameters below which the adapter is merged into a second copy for sampling, on a processor."""
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
    merged = stored < MERGED_BELOW
    weights = (shape.parameters + (shape.linear_parameters if merged else 0)) * size
    adapter = 16 * shape.adapter_parameters(rank)
    sampling = weights + adapter + COMPLETIONS * shape.row_bytes(PROMPT_TOKENS + max_tokens, size)

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
    share = free_ram() / max(1, min(psutil.virtual_memory().available, container_memory_left()))
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


def judge(shape: Shape, room: ComputerRoom, stored: int, max_tokens: int, missing: int) -> tuple[int, Fit]:
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


# The work of a round grows with parameters times tokens. The constants are those of a round of SmolLM2 135M (8
# questions, 8 answers) on two cores in 16 bits, slower by the processes that want the processor now; rounds of
# another model on this very computer replace them. The model's own first look, which answers the same kind of
# questions under the same load, tells more than either.

FIXED_S = 2.0
"""Seconds of a round that do not depend on the model: drawing questions, scoring, saving."""
_REFERENCE = 135e6 * 64
_REFERENCE_S = 5.0
_REFERENCE_CORES = 2
_MAX_CORES = 8
"""Number of cores beyond which more bring little."""
_TELLING = 50e6
"""Minimum parameters of a model whose measured rounds predict those of other models."""


_FREE, _BUSY = 1.0, 4.0
"""Range of an estimate by size, as factors. SmolLM2 135M in fp32 on two cores: 12 s estimated, 8 to 16 s
measured, 36 to 42 s while llama.cpp was being compiled. 0.5 billion parameters: 57 s estimated, 220 s
measured."""
_LOOK_ANSWERS = (450, 750)
"""Range of the number of answers in a first evaluation: 480 to 744 in four homes of SmolLM2 135M."""
_LOOK_ROUNDS = (6.0, 16.0)
"""Range of the duration of a first evaluation, in rounds, before any answer was timed: measured 43, 71, 151 and
372 s with bf16 beside other programs, where 7 to 28 s per round are estimated."""
_KNOWN = (0.7, 2.0)
"""Range of an estimate from another model's rounds, as factors."""
_ANSWERS = 64
_LOOKED = (0.2, 0.9)
"""Range of the seconds of a round relative to the time of the same number of answers in the first evaluation:
0.22 to 0.87 in six homes of SmolLM2 135M. A round's prompts hold no examples, so they are shorter."""


class RoundWork(msgspec.Struct, frozen=True, kw_only=True):
    """A model's measured speed. `round_s`: mean seconds of a round here, None before the first. `answer_s`:
    mean seconds of an answer in the first evaluation, None before it."""

    parameters: int
    max_tokens: int
    round_s: float | None = None
    answer_s: float | None = None
    answers: int = 0
    """Answers done so far in a first evaluation that is under way; `looks` says whether one is due or under
    way."""
    looks: bool = False


def seconds_of_round(
    work: RoundWork, cores: int, dtype: Dtype, others: Iterable[RoundWork] = (), load: float = 0.0
) -> tuple[float, float]:
    """Returns the minimum and maximum seconds of a round; equal if measured. `load` is the number of processes
    that compete for the processor.

    >>> small = RoundWork(parameters=135_000_000, max_tokens=64)
    >>> seconds_of_round(small, 2, "bfloat16"), seconds_of_round(small, 4, "float32")
    ((7.0, 28.0), (7.0, 28.0))
    >>> seconds_of_round(small, 2, "bfloat16", load=3.0)
    (17.5, 70.0)
    >>> known = RoundWork(parameters=135_000_000, max_tokens=64, round_s=12.0)
    >>> seconds_of_round(known, 2, "bfloat16")
    (12.0, 12.0)
    >>> seconds_of_round(RoundWork(parameters=270_000_000, max_tokens=64), 2, "bfloat16", [known])
    (15.4, 44.0)
    >>> seconds_of_round(RoundWork(parameters=135_000_000, max_tokens=64, answer_s=1.5), 2, "bfloat16", [known])
    (19.2, 86.4)
    """
    if work.round_s is not None:
        return work.round_s, work.round_s
    if work.answer_s is not None:
        least, most = _LOOKED
        return round(least * _ANSWERS * work.answer_s, 2), round(most * _ANSWERS * work.answer_s, 2)
    telling = [one for one in others if one.round_s is not None and one.parameters >= _TELLING]
    factor, (least, most) = 1.0, (_KNOWN if telling else (_FREE, _BUSY))
    slower = 1.0 if telling else 1.0 + load / cores
    if telling:
        nearest = min(telling, key=lambda one: abs(one.parameters - work.parameters))
        assert nearest.round_s is not None
        factor = max(nearest.round_s - FIXED_S, 0.1) / _computing_s(nearest, cores, dtype)
    expected = slower * (FIXED_S + factor * _computing_s(work, cores, dtype))
    return round(least * expected, 2), round(most * expected, 2)


def seconds_of_first_evaluation(work: RoundWork, round_s: tuple[float, float]) -> tuple[float, float] | None:
    """Returns the minimum and maximum seconds until the first evaluation is over, given those of a round; None
    if no evaluation is due.

    >>> seconds_of_first_evaluation(RoundWork(parameters=1, max_tokens=1, looks=True), (7.0, 28.0))
    (42.0, 448.0)
    >>> begun = RoundWork(parameters=1, max_tokens=1, looks=True, answer_s=0.2, answers=400)
    >>> seconds_of_first_evaluation(begun, (7.0, 28.0))
    (10.0, 70.0)
    >>> seconds_of_first_evaluation(RoundWork(parameters=1, max_tokens=1), (7.0, 28.0))
    """
    if not work.looks:
        return None
    if work.answer_s is None:
        return _LOOK_ROUNDS[0] * round_s[0], _LOOK_ROUNDS[1] * round_s[1]
    least, most = (round(max(1, count - work.answers) * work.answer_s, 2) for count in _LOOK_ANSWERS)
    return least, most


def _computing_s(work: RoundWork, cores: int, dtype: Dtype) -> float:
    slower = 2.0 if dtype == "float32" else 1.0
    share = _REFERENCE_CORES / min(cores, _MAX_CORES)
    return _REFERENCE_S * slower * share * work.parameters * work.max_tokens / _REFERENCE
