"""The engines by name: one folder and one line each. Loads no library."""

from __future__ import annotations

from typing import NamedTuple


class EngineEntry(NamedTuple):
    title: str
    package: str
    """It has `open_engine` and, where it cannot run everywhere, `available`."""
    library: str
    """What the package stands on: whether it is there tells in a millisecond what an import takes a second
    for."""
    distributions: tuple[str, ...]
    """Whose versions decide how fast the engine is."""


ENGINES = {
    "torch": EngineEntry("PyTorch", "engines.torch_lora", "torch", ("torch",)),
    "llamacpp": EngineEntry("llama.cpp", "engines.llamacpp", "llama_cpp", ("llama-cpp-python",)),
    "mlx": EngineEntry("MLX", "engines.mlx_lora", "mlx", ("mlx", "mlx-lm")),
}
