"""LoRA adapters in PEFT's files, read as plain matrices and written with the optimiser state.

Scales that PEFT keeps in its settings (rank-stabilised LoRA, alphas of single layers) are multiplied into B, so
that `alpha / rank` is the scale of every layer.

Every engine writes the same files, so that one continues what another began:

adapter_model.safetensors  A and B of every layer, as PEFT names them   adapter_config.json  PEFT's settings
optimizer.safetensors      AdamW's two moments                          optimizer.json       steps, base model

Safetensors and JSON only; numpy, so that no engine needs another's library."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from engines.contract import AdapterError, EngineError
from engines.files import flush, write
from engines.models.folder import read_json

ADAPTER, ADAPTER_CONFIG = "adapter_model.safetensors", "adapter_config.json"
OPTIMIZER, OPTIMIZER_STATE = "optimizer.safetensors", "optimizer.json"
_MOMENTS = ("exp_avg.", "exp_avg_sq.")

Named = Mapping[str, np.ndarray[Any, np.dtype[np.float32]]]
"""fp32 arrays under PEFT's names: `base_model.model.<layer>.lora_A.weight` (rank, in), `lora_B` (out, rank)."""


class OptimizerState(msgspec.Struct, frozen=True, kw_only=True):
    """AdamW's state besides its moments; `base` is the fingerprint of the frozen weights."""

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
    """Writes the four files and flushes them, and the folder, to disk. Raises EngineError if that fails."""
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
    """Returns the state, the values and both moments that `save` wrote. Raises AdapterError if a file is
    missing or damaged, has other names, shapes or number formats than `shapes` and fp32, or belongs to another
    base model or rank."""
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
    """Returns the file's arrays, which must have exactly these names and shapes and be fp32 and finite. Raises
    AdapterError."""
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
    """Returns what peft's LoraConfig needs to build the same layers. Only the layers named here are adapted."""
    layers = {name.removesuffix(".weight").rpartition(".")[0] for name in values}
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": state.model,
        "r": state.rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted({_ending(layer) for layer in layers}),
        "inference_mode": True,
    }


def _ending(layer: str) -> str:
    """Returns the name by which peft finds a layer: its last part, and if that is a number, also the part
    before it; otherwise peft would match "0" of every list of layers.

    >>> _ending("base_model.model.model.layers.0.mlp.up_proj"), _ending("base_model.model.altup_projections.0")
    ('up_proj', 'altup_projections.0')
    """
    parts = layer.split(".")
    return ".".join(parts[-2:] if parts[-1].isdigit() else parts[-1:])


Array = NDArray[Any]

PREFIX = "base_model.model."
A, B = ".lora_A.weight", ".lora_B.weight"
_UNKNOWN = ("use_dora", "modules_to_save", "layer_replication", "trainable_token_indices")
"""Settings of PEFT adapters that need more than two matrices per layer."""


@dataclass(frozen=True)
class Pair:
    """A (rank, in) and B (out, rank) of one layer, fp32."""

    a: Array
    b: Array

    @property
    def rank(self) -> int:
        return int(self.a.shape[0])


@dataclass(frozen=True)
class Lora:
    """An adapter: `pairs` by the base model's layer names; each layer is scaled by `alpha / rank`."""

    pairs: Mapping[str, Pair]
    alpha: float

    def delta(self, layer: str) -> Array:
        """Returns what the adapter adds to a layer's weights, `alpha / rank * B A`, (out, in) fp32."""
        pair = self.pairs[layer]
        product: Array = pair.b @ pair.a
        return product * np.float32(self.alpha / pair.rank)

    def check(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raises AdapterError unless every layer exists in a base with these `shapes` (out, in)."""
        for layer, pair in self.pairs.items():
            shape = shapes.get(layer)
            if shape is None:
                raise AdapterError(
                    f"The adapter has {layer}, which this model hasn't: start with its own model."
                )
            if (pair.b.shape[0], pair.a.shape[1]) != tuple(shape):
                raise AdapterError(f"The adapter's {layer} is of another model: start with its own.")


def pairs(state: Mapping[str, Array]) -> dict[str, Pair]:
    """Groups tensors under PEFT's names into one pair (A, B) per layer, by the layer's name. Raises
    AdapterError if a layer has only one of the two, shapes do not match, or there is another tensor or none at
    all."""
    found = {}
    for name, a in state.items():
        if not name.endswith(A):
            continue
        layer = name.removeprefix(PREFIX).removesuffix(A)
        b = state.get(f"{name.removesuffix(A)}{B}")
        if b is None or a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[1]:
            raise AdapterError(f"The adapter has only half of {layer}: take another copy.")
        found[layer] = Pair(a, b)
    if not found or 2 * len(found) != len(state):
        raise AdapterError("The adapter holds no LoRA layers, or more than those: start with its own model.")
    return found


def read(folder: Path) -> Lora:
    """Reads the adapter in PEFT's folder. Raises AdapterError, one sentence."""
    state, alpha = read_state(folder)
    return Lora(pairs(state), alpha)


def read_state(folder: Path) -> tuple[dict[str, Array], float]:
    """Returns PEFT's tensors as fp32, and the alpha to use with them. Raises AdapterError."""
    if not (folder / ADAPTER_CONFIG).is_file():
        raise AdapterError(f"{folder} has no {ADAPTER_CONFIG}: give the folder of a PEFT adapter.")
    try:
        config = read_json(folder / ADAPTER_CONFIG)
    except EngineError as error:
        raise AdapterError(f"{ADAPTER_CONFIG} in {folder} is damaged: take another copy.") from error
    for key in _UNKNOWN:
        if config.get(key):
            raise AdapterError(
                f"The adapter in {folder} uses {key}, which isn't known here: take a plain LoRA."
            )
    if config.get("peft_type") != "LORA" or config.get("bias", "none") != "none":
        raise AdapterError(f"The adapter in {folder} is no plain LoRA: take one of that kind.")
    state = _read_tensors(folder)
    try:
        alpha = float(config["lora_alpha"])
        _fold_scales(state, alpha, config)
    except (KeyError, TypeError, ValueError) as error:
        raise AdapterError(f"{ADAPTER_CONFIG} in {folder} is damaged: take another copy.") from error
    return state, alpha


def _read_tensors(folder: Path) -> dict[str, Array]:
    try:
        with safe_open(str(folder / ADAPTER), framework="pt") as tensors:
            state: dict[str, Array] = {
                name: tensors.get_tensor(name).float().numpy()
                for name in tensors.keys()  # noqa: SIM118 - not a dict
            }
    except (SafetensorError, OSError) as error:
        raise AdapterError(f"{ADAPTER} in {folder} is missing or damaged: take another copy.") from error
    for name, tensor in state.items():
        if not np.isfinite(tensor).all():
            raise AdapterError(f"{ADAPTER} in {folder} holds no numbers in {name}: take an earlier one.")
    return state


def _fold_scales(state: dict[str, Array], alpha: float, config: Mapping[str, Any]) -> None:
    """Multiplies scales into B, so that `alpha / rank` is the right scale of every layer."""
    alphas = dict(config.get("alpha_pattern") or {})
    stabilised = bool(config.get("use_rslora"))
    for name in list(state):
        if not name.endswith(B):
            continue
        layer = name.removeprefix(PREFIX).removesuffix(B)
        own = next((float(v) for k, v in alphas.items() if layer == k or layer.endswith(f".{k}")), alpha)
        factor = own / alpha * (math.sqrt(state[name].shape[1]) if stabilised else 1.0)
        if factor != 1.0:
            state[name] = state[name] * np.float32(factor)
