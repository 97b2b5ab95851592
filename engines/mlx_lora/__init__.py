"""The engine for Apple Silicon: MLX samples and trains on the GPU, in the computer's main memory.

mlx-lm provides the layers of Qwen2, Qwen3 and Llama and its LoRA layer; sampling, the loss and the checkpoint
files are ours. On Linux the same code runs on the processor, for tests: why_unavailable() returns "" there, but
the engine is never chosen automatically."""

from __future__ import annotations

import importlib.util
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from engines.contract import EngineOptions
from engines.remedy import repair_phrase

if TYPE_CHECKING:
    from engines.mlx_lora.engine import MlxEngine

__all__ = ["open_engine", "why_unavailable"]


def why_unavailable() -> str:
    """Returns one sentence that says why MLX cannot run here and what to do; "" if it can. Imports mlx, loads
    no model."""
    if sys.platform == "darwin" and platform.machine() != "arm64":
        return "MLX needs a Mac with Apple Silicon, and this one has an Intel processor: choose another engine."
    if sys.platform not in ("darwin", "linux"):
        return "MLX runs on Macs with Apple Silicon, and for tests on Linux: choose another engine."
    for package in ("mlx", "mlx_lm"):
        if importlib.util.find_spec(package) is None:
            return f"MLX isn't installed: {repair_phrase('mlx')}."
    try:
        import mlx.core as mx

        mx.eval(mx.ones(1) + 1)
    except (ImportError, OSError, RuntimeError) as error:
        said = " ".join(str(error).split())[:200]
        return f"MLX doesn't load ({said}): {repair_phrase('mlx')}, or choose another engine."
    return ""


def open_engine(model: str | Path, *, seed: int = 0, **options: Unpack[EngineOptions]) -> MlxEngine:
    """Opens the engine, like `engines.torch_lora.open_engine`; `device` is "auto", "gpu" or "cpu". MLX has no
    setting for threads (on Apple Silicon the GPU computes, elsewhere the linear algebra library decides), so
    `threads` and `thread_share` are ignored. Raises EngineError."""
    from engines.mlx_lora.engine import MlxEngine

    return MlxEngine(model, seed=seed, **options)
