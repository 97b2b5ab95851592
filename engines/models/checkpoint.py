"""Adapter and optimiser on disk, the same files from every engine: what one wrote, another goes on with.

adapter_model.safetensors  A and B of every layer, as PEFT names them    adapter_config.json  PEFT's settings
optimizer.safetensors      AdamW's two moments                           optimizer.json       steps, base model

Safetensors and JSON only; numpy, so that no engine needs another's library.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from engines.contract import AdapterError, EngineError
from engines.files import flush, write

ADAPTER, ADAPTER_CONFIG = "adapter_model.safetensors", "adapter_config.json"
OPTIMIZER, OPTIMIZER_STATE = "optimizer.safetensors", "optimizer.json"
_MOMENTS = ("exp_avg.", "exp_avg_sq.")

Named = Mapping[str, np.ndarray[Any, np.dtype[np.float32]]]
"""fp32 arrays under PEFT's names: `base_model.model.<layer>.lora_A.weight` (rank, in), `lora_B` (out, rank)."""


class OptimizerState(msgspec.Struct, frozen=True, kw_only=True):
    """What AdamW needs beside its moments; `base` is the fingerprint of the frozen weights."""

    steps: int
    rank: int
    base: str
    model: str
    format: int = 1


def save(
    folder: Path,
    state: OptimizerState,
    alpha: int,
    values: Named,
    moments_1: Named,
    moments_2: Named,
) -> None:
    """Writes the four files and flushes them, and the folder, to disk. Raises EngineError when that fails."""
    moments = {f"{_MOMENTS[0]}{name}": array for name, array in moments_1.items()}
    moments |= {f"{_MOMENTS[1]}{name}": array for name, array in moments_2.items()}
    config = _peft_config(state, alpha, values)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write(folder / ADAPTER, _packed(values))
        write(folder / ADAPTER_CONFIG, msgspec.json.format(msgspec.json.encode(config)))
        write(folder / OPTIMIZER, _packed(moments))
        write(folder / OPTIMIZER_STATE, msgspec.json.encode(state))
        flush(folder)
    except OSError as error:
        raise EngineError(
            f"The adapter couldn't be saved in {folder} ({error.strerror}): free some space."
        ) from error


def load(
    folder: Path, base: str, rank: int, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[OptimizerState, Named, Named, Named]:
    """The state, values and both moments that `save` wrote.

    Raises AdapterError when a file is missing or damaged, has other names, shapes or number formats than
    `shapes` and fp32, or belongs to another base model."""
    try:
        state = msgspec.json.decode((folder / OPTIMIZER_STATE).read_bytes(), type=OptimizerState)
    except (OSError, msgspec.MsgspecError) as error:
        raise _damaged(folder, OPTIMIZER_STATE) from error
    if state.base != base:
        raise AdapterError(f"The adapter in {folder} was trained on another model: start with {state.model}.")
    if state.rank != rank:
        raise AdapterError(f"The adapter in {folder} has rank {state.rank}, not {rank}: start with that.")
    if state.steps < 0:
        raise _damaged(folder, OPTIMIZER_STATE)
    values = _read(folder / ADAPTER, shapes)
    moments = _read(
        folder / OPTIMIZER, {f"{kind}{name}": shape for kind in _MOMENTS for name, shape in shapes.items()}
    )
    first, second = ({name: moments[f"{kind}{name}"] for name in shapes} for kind in _MOMENTS)
    if any(bool((array < 0).any()) for array in second.values()):
        raise _damaged(folder, OPTIMIZER)
    return state, values, first, second


def _read(file: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """The file's arrays, which must be exactly these, fp32 and finite."""
    found = {}
    try:
        with safe_open(str(file), framework="numpy") as arrays:
            if set(arrays.keys()) != set(shapes):
                raise AdapterError(f"{file} has layers of another model: start with the one it was made for.")
            for name, shape in shapes.items():
                part = arrays.get_slice(name)
                if tuple(part.get_shape()) != tuple(shape) or part.get_dtype() != "F32":
                    raise AdapterError(
                        f"{file} has {name} in another shape: start with the model it was made for."
                    )
                found[name] = arrays.get_tensor(name)
                if not np.isfinite(found[name]).all():
                    raise _damaged(file.parent, file.name)
    except (SafetensorError, OSError) as error:
        raise _damaged(file.parent, file.name) from error
    return found


def _damaged(folder: Path, name: str) -> AdapterError:
    return AdapterError(f"{name} in {folder} is missing or damaged: go back to an earlier checkpoint.")


def _packed(arrays: Named) -> bytes:
    return to_bytes({name: np.ascontiguousarray(array) for name, array in arrays.items()}, {"format": "pt"})


def _peft_config(state: OptimizerState, alpha: int, values: Named) -> dict[str, Any]:
    """What peft's LoraConfig needs to build the same layers. Only layers named here are adapted."""
    layers = {name.removesuffix(".weight").rpartition(".")[0] for name in values}
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": state.model,
        "r": state.rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted({layer.rsplit(".", 1)[-1] for layer in layers}),
        "inference_mode": True,
    }
