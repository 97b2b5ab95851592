"""From an engine's name to an engine. Packages are imported when they are wanted, not before: each loads a
library of its own, and most computers have not all of them."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

from engines.contract import Engine, EngineError

AUTO = "auto"

PACKAGES = {"torch": "engines.torch_lora", "llamacpp": "engines.llamacpp", "mlx": "engines.mlx_lora"}
"""Name to package. Each package has `open_engine` (as below, without the name) and `available`."""

TITLES = {"torch": "PyTorch", "llamacpp": "llama.cpp", "mlx": "MLX"}

CHOICES = (AUTO, *PACKAGES)


def available(name: str) -> str:
    """Empty when the engine of that name can run here, else a sentence: why not, and what to do. Loads the
    engine's library, no model. Raises EngineError for a name that is none."""
    try:
        package = _package(name)
    except (ImportError, OSError) as error:
        said = " ".join(str(error).split())[:200]
        return f"The {TITLES[name]} engine does not load ({said}): run ./shoal setup --engine {name}."
    # The torch engine runs wherever its package loads.
    return str(package.available()) if hasattr(package, "available") else ""


def open_engine(
    name: str,
    model: str | Path,
    *,
    rank: int | None = None,
    seed: int = 0,
    device: str = "auto",
    threads: int | None = None,
    thread_share: float | None = None,
    batch_share: float = 1.0,
) -> Engine:
    """Opens the engine of that name, or with "auto" the one that suits this computer; the other arguments are
    those of every engine's own `open_engine`.

    Raises EngineError: a named engine that cannot run is never replaced by another one."""
    if name == AUTO:
        name = "torch"
    if reason := available(name):
        raise EngineError(reason)
    options: dict[str, Any] = dict(
        rank=rank, seed=seed, device=device, threads=threads, thread_share=thread_share, batch_share=batch_share
    )
    engine: Engine = _package(name).open_engine(model, **options)
    return engine


def prepare(name: str) -> None:
    """Imports what opening that engine will need: it takes seconds, in which others can work."""
    importlib.import_module(PACKAGES.get(name, PACKAGES["torch"]))


def _package(name: str) -> ModuleType:
    if name not in PACKAGES:
        raise EngineError(f"There is no engine {name!r}: choose {', '.join(CHOICES)}.")
    return importlib.import_module(PACKAGES[name])
