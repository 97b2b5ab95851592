"""A LoRA adapter as llama.cpp reads it, from PEFT's folder or straight from the tensors.

llama.cpp scales by `alpha / rank`; what PEFT scales otherwise (rank-stabilised LoRA, alphas of single layers)
goes into B. Of Llama models, B of queries and keys has the rows of its base (see gguf_tensors).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors import SafetensorError, safe_open

from engines.contract import AdapterError, EngineError
from engines.models.architecture import Architecture
from engines.models.checkpoint import ADAPTER, ADAPTER_CONFIG
from engines.models.folder import read_json
from engines.models.gguf_tensors import Array, interleaved, linears

_PREFIX = "base_model.model."
_A, _B = ".lora_A.weight", ".lora_B.weight"
_UNKNOWN = ("use_dora", "modules_to_save", "layer_replication", "trainable_token_indices")
"""Kinds of PEFT adapters that are more than two matrices a layer."""


def write(peft: Path, architecture: Architecture, to: Path) -> None:
    """PEFT's folder to a GGUF LoRA file. Raises AdapterError for what llama.cpp could not apply."""
    state, alpha = read_peft(peft)
    write_state(state, alpha=alpha, architecture=architecture, to=to)


def write_state(
    state: Mapping[str, Array], *, alpha: float, architecture: Architecture, to: Path, half: bool = False
) -> None:
    """A and B of every layer under PEFT's names, (rank, in) and (out, rank) fp32, to a GGUF LoRA file.

    `half` writes fp16, half the size. Raises AdapterError for layers that the architecture does not have, and
    EngineError when the file cannot be written."""
    layers = linears(architecture)
    writer = gguf.GGUFWriter(to, architecture.family)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    written = 0
    for name, a in state.items():
        if not name.endswith(_A):
            continue
        layer = name.removeprefix(_PREFIX).removesuffix(_A)
        b = state.get(f"{name.removesuffix(_A)}{_B}")
        base = layers.get(layer)
        if base is None or b is None or a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[1]:
            raise AdapterError(f"The adapter has {layer}, which this model has not: start with its own model.")
        if (b.shape[0], a.shape[1]) != base.shape:
            raise AdapterError(f"The adapter's {layer} is of another model: start with its own.")
        for suffix, matrix in (("lora_a", a), ("lora_b", interleaved(b, base.heads))):
            writer.add_tensor(
                f"{base.target}.{suffix}", np.ascontiguousarray(matrix, np.float16 if half else np.float32)
            )
        written += 2
    if not written or written != len(state):
        raise AdapterError("The adapter holds no LoRA layers, or more than those: start with its own model.")
    try:
        try:
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
        finally:
            writer.close()
    except OSError as error:
        raise EngineError(
            f"The adapter could not be written to {to} ({error.strerror}): free some space."
        ) from error


def read_peft(folder: Path) -> tuple[dict[str, Array], float]:
    """PEFT's tensors as fp32 and the alpha that llama.cpp needs with them. Raises AdapterError."""
    if not (folder / ADAPTER_CONFIG).is_file():
        raise AdapterError(f"{folder} has no {ADAPTER_CONFIG}: give the folder of a PEFT adapter.")
    try:
        config = read_json(folder / ADAPTER_CONFIG)
    except EngineError as error:
        raise AdapterError(f"{ADAPTER_CONFIG} in {folder} is damaged: take another copy.") from error
    for key in _UNKNOWN:
        if config.get(key):
            raise AdapterError(
                f"The adapter in {folder} uses {key}, which is not known here: take a plain LoRA."
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
    """Makes `alpha / rank` the right scale of every layer by multiplying B."""
    alphas = dict(config.get("alpha_pattern") or {})
    stabilised = bool(config.get("use_rslora"))
    for name in list(state):
        if not name.endswith(_B):
            continue
        layer = name.removeprefix(_PREFIX).removesuffix(_B)
        own = next((float(v) for k, v in alphas.items() if layer == k or layer.endswith(f".{k}")), alpha)
        factor = own / alpha * (math.sqrt(state[name].shape[1]) if stabilised else 1.0)
        if factor != 1.0:
            state[name] = state[name] * np.float32(factor)
