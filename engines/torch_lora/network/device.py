"""Chooses the device, the number format and the number of threads, and measures the memory that may be used."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional

from engines.contract import EngineError
from engines.facts import LARGE_PARAMETERS, cores, free_ram
from engines.facts import MB as MB

ONE_THREAD_PARAMETERS = 5_000_000
"""Number of parameters below which a second thread costs more time than it saves."""


@dataclass(frozen=True)
class DeviceBudget:
    """The device that a model runs on. `budget_bytes` is the memory for weights, caches and activations
    together; `name` is for the user."""

    device: torch.device
    dtype: torch.dtype
    threads: int
    budget_bytes: int
    name: str


def prepare_device(
    parameters: int, device: str = "auto", threads: int | None = None, thread_share: float | None = None
) -> DeviceBudget:
    """Chooses device and number format for a model of this size, and sets torch's thread count: `threads`, or a
    share of the cores.

    `device` is "auto", "cpu", "cuda", "cuda:1" or "mps". Raises EngineError for a device that does not
    exist."""
    chosen = choose_device(device)
    count = threads if threads is not None else default_threads(parameters, thread_share)
    if count < 1:
        raise EngineError(f"An engine can't run on {count} threads: give a number of at least 1.")
    torch.set_num_threads(count)
    if chosen.type == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)  # it plans each length first: 30 ms a token on an H200
        dtype = torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
        return DeviceBudget(chosen, dtype, count, free_memory(chosen), torch.cuda.get_device_name(chosen))
    if chosen.type == "mps":
        return DeviceBudget(chosen, torch.float32, count, free_memory(chosen), "Apple GPU")
    faster = parameters >= LARGE_PARAMETERS and bf16_is_faster(count)
    return DeviceBudget(chosen, torch.bfloat16 if faster else torch.float32, count, free_memory(chosen), "CPU")


def choose_device(wanted: str) -> torch.device:
    """Returns the device named `wanted`; "auto" picks the first available of CUDA, an Apple GPU and the
    processor. Raises EngineError if the name is unknown or there is no such device."""
    has: dict[str, Callable[[], bool]] = {
        "cuda": cuda_computes,
        "mps": torch.backends.mps.is_available,
        "cpu": lambda: True,
    }
    if wanted == "auto":
        return torch.device(next(kind for kind, there in has.items() if there()))
    kind = wanted.partition(":")[0]
    if kind not in has:
        raise EngineError(f"There is no device {wanted!r}: choose auto, cuda, mps or cpu.")
    if not has[kind]():
        raise EngineError(f"torch sees no {kind} device that it can use on this computer: choose cpu or auto.")
    device = torch.device(wanted)
    if kind == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise EngineError(
            f"There is no {wanted}: this computer has {torch.cuda.device_count()} CUDA devices, counted from 0."
        )
    return device


@functools.cache
def cuda_computes() -> bool:
    """Whether a card computes: the driver also takes cards for which this build of torch has no code."""
    try:
        return torch.cuda.is_available() and float(torch.ones(8, device="cuda").sum()) == 8.0
    except RuntimeError:
        return False


def default_threads(parameters: int, share: float | None = None) -> int:
    """Returns the number of threads to use: `share` of the physical cores, or without it all but one, which is
    left to the user (but both of two); 1 for tiny models."""
    if parameters < ONE_THREAD_PARAMETERS:
        return 1
    usable = cores()
    return max(1, max(min(2, usable), usable - 1) if share is None else round(share * usable))


def free_memory(device: torch.device) -> int:
    """Returns the bytes an engine may use now: most of the free memory, so that other programs keep some."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # torch's own store
        return int((torch.cuda.mem_get_info(device)[0] + unused) * 0.9)
    if device.type == "mps":
        return int((torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()) * 0.7)
    return free_ram()


@functools.cache
def bf16_is_faster(threads: int) -> bool:
    """Times one linear layer in both formats, in turns, because on a busy computer one of them alone could have
    the bad moments; returns whether bf16 is clearly faster, as on processors with native bf16."""
    inputs, weight = torch.randn(256, 1024), torch.randn(2048, 1024)
    inputs_16, weight_16 = inputs.bfloat16(), weight.bfloat16()
    fp32, bf16 = _fastest(
        lambda: functional.linear(inputs, weight), lambda: functional.linear(inputs_16, weight_16)
    )
    return bf16 < 0.7 * fp32


def skinny_linear(x_Bi: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Computes `x W^T` as blocks of `W x^T`, for few rows: MKL reads the weights nearly twice as fast that way.
    Returns a transposed view (B, out), which the next call uses without a copy."""
    rows, width = weight.shape
    blocks = 1
    while rows % (2 * blocks) == 0 and rows // (2 * blocks) >= _BLOCK_ROWS:
        blocks *= 2
    x_iB = x_Bi.t().contiguous()
    out = torch.bmm(weight.view(blocks, rows // blocks, width), x_iB.expand(blocks, -1, -1))
    return out.view(rows, -1).t()


_BLOCK_ROWS = 200
_TURNS = 12


def skinny_is_faster() -> bool:
    """Returns whether to use `skinny_linear`: if torch was built with MKL. Not timed, because on a busy
    computer the result would vary, and the same seed would not give the same tokens."""
    return bool(torch.backends.mkl.is_available())  # type: ignore[no-untyped-call]


def _fastest(*works: Callable[[], object]) -> list[float]:
    """Returns the shortest time of each in seconds."""
    fastest = [math.inf] * len(works)
    for turn in range(_TURNS):
        for place, work in enumerate(works):
            start = time.perf_counter()
            work()
            if turn:  # the first one sets up
                fastest[place] = min(fastest[place], time.perf_counter() - start)
    return fastest


def is_out_of_memory(error: Exception) -> bool:
    """Returns whether torch failed for lack of memory; the processor's allocator raises a plain
    RuntimeError."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "not enough memory" in str(error)
