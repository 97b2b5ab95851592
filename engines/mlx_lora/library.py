"""Modules of mlx-lm without mlx-lm's own start, which imports transformers and with it torch. The layers we use
need neither: 0.1 s instead of three to nine."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType


def library(name: str) -> ModuleType:
    """The module `mlx_lm.<name>`, its parents found but not run. Raises ImportError."""
    parts = f"mlx_lm.{name}".split(".")
    parents = [".".join(parts[:end]) for end in range(1, len(parts))]
    missing = [parent for parent in parents if parent not in sys.modules]
    try:
        for parent in missing:
            spec = importlib.util.find_spec(parent)
            if spec is None:
                raise ImportError(f"{parent} is not installed")
            sys.modules[parent] = importlib.util.module_from_spec(spec)
        return importlib.import_module(f"mlx_lm.{name}")
    finally:
        for parent in missing:  # anyone who imports mlx_lm itself later gets the whole of it
            sys.modules.pop(parent, None)
