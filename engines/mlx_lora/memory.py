"""The memory that MLX may take, and what it says when there is none left."""

from __future__ import annotations

import gc
from typing import Any

import mlx.core as mx

from engines.batches import MemoryErrors
from engines.memory import free_ram

_SAID = ("Unable to allocate", "Insufficient Memory", "maximum allowed buffer size", "out of memory")
"""In what MLX raises on Apple's GPU. On a processor it does not survive a failed allocation: there only the
budget that is measured beforehand helps."""


def free_memory(on_gpu: bool) -> int:
    """Bytes an engine may take now. Apple's GPU shares the computer's memory and may use part of it."""
    if not on_gpu:
        return free_ram() + mx.get_cache_memory()
    most: Any = mx.device_info().get("max_recommended_working_set_size", 0)
    return max(0, min(int(most) - mx.get_active_memory(), free_ram() + mx.get_cache_memory()))


def keep_to(budget_bytes: int, on_gpu: bool) -> None:
    """Limits what MLX takes and what it keeps of freed memory; on a Mac the model's weights stay resident."""
    mx.set_memory_limit(budget_bytes)
    mx.set_cache_limit(max(2**26, budget_bytes // 8))
    if on_gpu and mx.metal.is_available():
        most: Any = mx.device_info().get("max_recommended_working_set_size", 0)
        mx.set_wired_limit(min(budget_bytes, int(most)))


def release() -> None:
    """Gives kept memory back before a smaller attempt."""
    gc.collect()
    mx.clear_cache()


def is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or any(said in str(error) for said in _SAID)


MEMORY = MemoryErrors(is_out_of_memory, release)
