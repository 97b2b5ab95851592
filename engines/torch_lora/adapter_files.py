"""The torch adapter to and from the files that every engine shares (engines.models.checkpoint)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from engines.models import checkpoint
from engines.models.checkpoint import ADAPTER, ADAPTER_CONFIG, OPTIMIZER, OPTIMIZER_STATE, OptimizerState
from engines.torch_lora.network.adapter import Adapter

__all__ = ["ADAPTER", "ADAPTER_CONFIG", "OPTIMIZER", "OPTIMIZER_STATE", "OptimizerState", "load", "save"]


def save(adapter: Adapter, folder: Path, base: str, model: str) -> None:
    """Writes adapter and optimiser and flushes them to disk. Raises EngineError when that fails."""
    state = OptimizerState(steps=adapter.steps, rank=adapter.rank, base=base, model=model)
    values, first, second = (
        _arrays(adapter, flat) for flat in (adapter.values, adapter.moments_1, adapter.moments_2)
    )
    checkpoint.save(folder, state, int(adapter.scale * adapter.rank), values, first, second)


def load(adapter: Adapter, folder: Path, base: str) -> None:
    """Takes over saved state. Raises AdapterError, before anything changes, when it is not this adapter's."""
    shapes = {name: tuple(view.shape) for name, view in adapter.named(adapter.values)}
    state, *arrays = checkpoint.load(folder, base, adapter.rank, shapes)
    values, first, second = (_flat(adapter, found) for found in arrays)
    adapter.replace(values, first, second, state.steps)


def _arrays(adapter: Adapter, flat: torch.Tensor) -> dict[str, Any]:
    on_cpu = flat.detach().cpu()
    return {name: view.numpy() for name, view in adapter.named(on_cpu)}


def _flat(adapter: Adapter, arrays: Any) -> torch.Tensor:
    flat = torch.empty(adapter.values.shape)
    for name, view in adapter.named(flat):
        view.copy_(torch.from_numpy(arrays[name]))
    return flat
