"""Adapter and optimiser on disk: the adapter as PEFT writes it, the rest beside it. Safetensors and JSON only.

adapter_model.safetensors  A and B of every layer       adapter_config.json  PEFT's settings
optimizer.safetensors      AdamW's two moments          optimizer.json       step count and base model
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes

from engines.contract import AdapterError, EngineError
from engines.torch_lora.adapter import Adapter

ADAPTER, ADAPTER_CONFIG = "adapter_model.safetensors", "adapter_config.json"
OPTIMIZER, OPTIMIZER_STATE = "optimizer.safetensors", "optimizer.json"
_MOMENTS = ("exp_avg.", "exp_avg_sq.")


class OptimizerState(msgspec.Struct, frozen=True, kw_only=True):
    """What AdamW needs beside its moments; `base` is the fingerprint of the frozen weights."""

    steps: int
    rank: int
    base: str
    model: str
    format: int = 1


def save(adapter: Adapter, folder: Path, base: str, model: str) -> None:
    """Writes the four files and flushes them, and the folder, to disk. Raises EngineError when that fails."""
    state = OptimizerState(steps=adapter.steps, rank=adapter.rank, base=base, model=model)
    moments = {f"{_MOMENTS[0]}{name}": tensor for name, tensor in adapter.named(adapter.moments_1)}
    moments |= {f"{_MOMENTS[1]}{name}": tensor for name, tensor in adapter.named(adapter.moments_2)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / ADAPTER, to_bytes(_cpu(dict(adapter.named(adapter.values))), {"format": "pt"}))
        _write(folder / ADAPTER_CONFIG, msgspec.json.format(msgspec.json.encode(_peft_config(adapter, model))))
        _write(folder / OPTIMIZER, to_bytes(_cpu(moments), {"format": "pt"}))
        _write(folder / OPTIMIZER_STATE, msgspec.json.encode(state))
        _flush_folder(folder)
    except OSError as error:
        raise EngineError(
            f"The adapter could not be saved in {folder} ({error.strerror}): free some space."
        ) from error


def load(adapter: Adapter, folder: Path, base: str) -> None:
    """Takes over saved state.

    Raises AdapterError, before anything changes, when a file is missing or damaged, has other names, shapes or
    number formats than this adapter, or belongs to another base model."""
    try:
        state = msgspec.json.decode((folder / OPTIMIZER_STATE).read_bytes(), type=OptimizerState)
    except (OSError, msgspec.MsgspecError) as error:
        raise _damaged(folder, OPTIMIZER_STATE) from error
    if state.base != base:
        raise AdapterError(f"The adapter in {folder} was trained on another model: start with {state.model}.")
    if state.rank != adapter.rank:
        raise AdapterError(
            f"The adapter in {folder} has rank {state.rank}, not {adapter.rank}: start with that."
        )
    if state.steps < 0:
        raise _damaged(folder, OPTIMIZER_STATE)
    values, moments_1, moments_2 = (torch.empty_like(adapter.values) for _ in range(3))
    _read(folder / ADAPTER, dict(adapter.named(values)))
    first = {f"{_MOMENTS[0]}{name}": view for name, view in adapter.named(moments_1)}
    second = {f"{_MOMENTS[1]}{name}": view for name, view in adapter.named(moments_2)}
    _read(folder / OPTIMIZER, first | second)
    if bool((moments_2 < 0).any()):
        raise _damaged(folder, OPTIMIZER)
    adapter.replace(values, moments_1, moments_2, state.steps)


def _read(file: Path, targets: dict[str, torch.Tensor]) -> None:
    """Fills every target from the file, which must hold exactly these, fp32 and finite."""
    try:
        with safe_open(str(file), framework="pt") as tensors:
            if set(tensors.keys()) != set(targets):
                raise AdapterError(f"{file} has layers of another model: start with the one it was made for.")
            for name, target in targets.items():
                tensor = tensors.get_tensor(name)
                if tensor.shape != target.shape or tensor.dtype != torch.float32:
                    raise AdapterError(
                        f"{file} has {name} in another shape: start with the model it was made for."
                    )
                if not bool(torch.isfinite(tensor).all()):
                    raise _damaged(file.parent, file.name)
                target.copy_(tensor)
    except (SafetensorError, OSError) as error:
        raise _damaged(file.parent, file.name) from error


def _damaged(folder: Path, name: str) -> AdapterError:
    return AdapterError(f"{name} in {folder} is missing or damaged: go back to an earlier checkpoint.")


def _cpu(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}


def _peft_config(adapter: Adapter, model: str) -> dict[str, Any]:
    """What peft's LoraConfig needs to build the same layers. Only layers named here are adapted."""
    names = [name for projection in adapter.projections for name in projection.names]
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": model,
        "r": adapter.rank,
        "lora_alpha": int(adapter.scale * adapter.rank),
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted({name.rsplit(".", 1)[-1] for name in names}),
        "inference_mode": True,
    }


def _write(file: Path, content: bytes) -> None:
    with file.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())


def _flush_folder(folder: Path) -> None:
    if os.name == "nt":  # Windows opens no folders, and makes names durable by itself
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
