"""The engine of Apple Silicon: MLX samples and learns on the GPU, in the computer's own memory.

mlx-lm brings the layers of Qwen2, Qwen3 and Llama and its LoRA layer; sampling, the loss and the checkpoint's
files are ours. On Linux the same code runs on the processor, for tests: available() says yes there, but the
engine is never chosen there automatically.
"""

from __future__ import annotations

import importlib.util
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from engines.contract import EngineOptions
from engines.remedy import repair

if TYPE_CHECKING:
    from engines.mlx_lora.engine import MlxEngine

__all__ = ["available", "open_engine"]


def available() -> str:
    """Empty when MLX can run here, else why not and what to do. Imports mlx, loads no model."""
    if sys.platform == "darwin" and platform.machine() != "arm64":
        return "MLX needs a Mac with Apple Silicon, and this one has an Intel processor: choose another engine."
    if sys.platform not in ("darwin", "linux"):
        return "MLX runs on Macs with Apple Silicon, and for tests on Linux: choose another engine."
    for package in ("mlx", "mlx_lm"):
        if importlib.util.find_spec(package) is None:
            return f"MLX isn't installed: {repair('mlx')}."
    try:
        import mlx.core as mx

        mx.eval(mx.ones(1) + 1)
    except (ImportError, OSError, RuntimeError) as error:
        said = " ".join(str(error).split())[:200]
        return f"MLX doesn't load ({said}): {repair('mlx')}, or choose another engine."
    return ""


def open_engine(model: str | Path, *, seed: int = 0, **options: Unpack[EngineOptions]) -> MlxEngine:
    """As `engines.torch_lora.open_engine`; `device` is "auto", "gpu" or "cpu".

    MLX has no setting for threads (on Apple Silicon the GPU works, elsewhere the linear algebra library
    decides), so `threads` and `thread_share` change nothing. Raises EngineError."""
    from engines.mlx_lora.engine import MlxEngine

    return MlxEngine(model, seed=seed, **options)
