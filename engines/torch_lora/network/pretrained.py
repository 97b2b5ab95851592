"""Opens a model of transformers with peft's LoRA layers, with a sentence if it cannot be opened."""

from __future__ import annotations

from typing import Any

import torch

from engines.contract import EngineError
from engines.models.folder import Folder
from engines.torch_lora.network.adapter import ALPHA_OVER_RANK

_MAMBA = ("mamba", "mamba2", "falcon_mamba", "falcon_h1", "nemotron_h")
"""Families that use the weights of `out_proj` without calling the layer, so that LoRA would have no effect."""

_IN_EXPERTS = {"gate", "gate_proj", "up_proj", "down_proj", "w1", "w2", "w3"}


def strange(folder: Folder) -> EngineError:
    """Returns the error for an architecture whose cache Shoal does not understand."""
    family = str(folder.config.get("model_type", "unknown"))[:40]
    return EngineError(
        f"{folder.name} can't learn here yet: its architecture, {family!r}, keeps what it has read in a way "
        "Shoal doesn't know. Choose a Qwen, Llama, Gemma or Mistral model."
    )


def context(config: Any) -> int:
    """Returns the context length, whatever the architecture calls it."""
    for name in ("max_position_embeddings", "n_positions", "max_seq_len"):
        if isinstance(length := getattr(config, name, None), int):
            return length
    return 2048


def load(folder: Folder, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    family = str(folder.config.get("model_type", "unknown"))[:40]
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder.path, local_files_only=True, trust_remote_code=False, use_safetensors=True, dtype=dtype
        )
    except (AttributeError, TypeError, OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        raise EngineError(
            f"{folder.name} can't be opened: its architecture {family!r} is unknown or its files are damaged: "
            "choose a Qwen2, Qwen3 or Llama model."
        ) from error
    module: Any
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = 0.0
    return model


def with_lora(model: Any, rank: int, name: str) -> Any:
    """Adds LoRA to every linear layer except the head, each by name. In a mixture of experts, layers with the
    same names as parts of fused experts are left out: peft confuses the two, and cannot load them again."""
    from peft import LoraConfig, get_peft_model
    from transformers.pytorch_utils import Conv1D

    skipped = {"out_proj"} if model.config.model_type in _MAMBA else set()
    if any(parameter.endswith("experts.gate_up_proj") for parameter, _ in model.named_parameters()):
        skipped |= _IN_EXPERTS
    layers = [
        layer
        for layer, module in model.named_modules()
        if isinstance(module, torch.nn.Linear | Conv1D)
        and module is not model.get_output_embeddings()
        and layer.rpartition(".")[2] not in skipped
    ]
    if not layers:
        raise EngineError(f"{name} has no linear layers that LoRA could train: choose another model.")
    config = LoraConfig(
        r=rank,
        lora_alpha=int(ALPHA_OVER_RANK * rank),
        lora_dropout=0.0,
        target_modules=layers,
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, config)
