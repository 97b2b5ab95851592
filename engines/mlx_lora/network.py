"""mlx-lm's decoder of the Qwen2, Qwen3 or Llama family, three times over the same frozen arrays: plain, with
LoRA layers for learning, and with the adapter merged in for sampling.

`import_library` imports single modules of mlx-lm without its own start, which imports transformers and with
it torch: 0.1 s instead of three to nine."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from engines.batches import MemoryRecovery
from engines.contract import EngineError
from engines.facts import free_ram
from engines.mlx_lora.adapter import ALPHA_OVER_RANK, AdaptedLayer, Adapter
from engines.models.folder import Architecture, Folder, Rope


def import_library(name: str) -> ModuleType:
    """Imports the module `mlx_lm.<name>` without running its parent packages. Raises ImportError."""
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
        for parent in missing:  # a later import of mlx_lm itself loads all of it
            sys.modules.pop(parent, None)


_LINEARS = (
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)


class Network:
    """A frozen model. `plain` is the base alone, `learner` the same arrays with LoRA layers, listed in
    `places`. `bind` sets their values; `merged` returns a decoder with an adapter merged in."""

    def __init__(self, folder: Folder, shape: Architecture, dtype: mx.Dtype, rank: int) -> None:
        self.shape = shape
        self.dtype = dtype
        weights = _read(folder, dtype)
        tied = shape.tied or "lm_head.weight" not in weights
        settings = _settings(folder, shape, tied)
        self.plain = _build(shape, settings)
        if hasattr(self.plain, "sanitize"):
            weights = self.plain.sanitize(weights)
        try:
            self.plain.load_weights(list(weights.items()), strict=True)
        except ValueError as error:
            said = " ".join(str(error).split())[:200]
            raise EngineError(
                f"{folder.name} has other weights than its config.json says ({said}): download the model again."
            ) from error
        mx.eval(self.plain.parameters())
        _check_rope(self.plain, shape, folder.name)
        self.head: mx.array = (self.plain.model.embed_tokens if tied else self.plain.lm_head).weight
        self.learner = _build(shape, settings)
        self.learner.update(self.plain.parameters())
        self._lora = self._add_lora(rank)
        self._merged: nn.Module | None = None
        self._holds: tuple[Adapter, int] | None = None
        self._settings = settings

    def _add_lora(self, rank: int) -> list[Any]:
        lora_linear = import_library("tuner.lora").LoRALinear
        added = []
        self.places = []
        for index, layer in enumerate(self.learner.model.layers):
            for path in _LINEARS:
                room, _, name = path.partition(".")
                linear = getattr(layer[room], name)
                adapted = lora_linear.from_base(linear, r=rank, dropout=0.0, scale=ALPHA_OVER_RANK)
                setattr(layer[room], name, adapted)
                added.append(adapted)
                width_out, width_in = linear.weight.shape
                self.places.append(AdaptedLayer(f"model.layers.{index}.{path}", width_in, width_out))
        return added

    def bind(self, matrices: list[tuple[mx.array, mx.array]], first: int = 0) -> None:
        """Sets A and B of the learner's LoRA layers, from layer `first` on; mlx-lm stores both transposed."""
        for layer, (a, b) in zip(self._lora[first : first + len(matrices)], matrices, strict=True):
            layer.lora_a, layer.lora_b = a.T, b.T

    def merged(self, adapter: Adapter) -> Any:
        """Returns a decoder with `W + scale * B A` as its adapted matrices: added in fp32, then cast to the
        base's format. Merges again only if the adapter has changed."""
        if self._merged is None:
            self._merged = _build(self.shape, self._settings)
            self._merged.update(self.plain.parameters())
        if self._holds is None or self._holds[0] is not adapter or self._holds[1] != adapter.version:
            self._holds = None  # so that a merge that fails half-way is repeated
            for place, lora, (a, b) in zip(
                adapter.places, self._lora, adapter.matrices(adapter.values), strict=True
            ):
                target = _at(self._merged, place.name)
                base = lora.linear.weight.astype(mx.float32)
                target.weight = (base + adapter.scale * (b @ a)).astype(self.dtype)
                mx.eval(target.weight)
            self._holds = (adapter, adapter.version)
        return self._merged

    def logits(self, decoder: Any, hidden: mx.array) -> mx.array:
        """Returns the fp32 logits of the last layer's hidden states."""
        logits: mx.array = (decoder.model.norm(hidden) @ self.head.T).astype(mx.float32)
        return logits

    @property
    def has_merged(self) -> bool:
        return self._merged is not None

    @property
    def merge_bytes(self) -> int:
        return sum(place.width_in * place.width_out for place in self.places) * self.dtype.size

    def row_bytes(self, tokens: int) -> int:
        """Returns the bytes of one sampled row of `tokens` tokens: KV cache, logits and their cumulative
        sums."""
        shape = self.shape
        cache = 2 * shape.layers * shape.kv_heads * shape.head_dim * tokens * self.dtype.size
        return 2 * cache + 20 * shape.vocabulary

    def token_bytes(self, checkpointing: bool, keys: int = 512) -> int:
        """Returns the bytes kept per token until its backward pass, including attention over `keys` keys."""
        shape = self.shape
        widest = 8 * shape.hidden + 8 * (shape.heads + shape.kv_heads) * shape.head_dim + 5 * shape.inner
        widest += 2 * shape.heads * keys
        kept = shape.layers * shape.hidden + 2 * widest if checkpointing else shape.layers * widest
        return kept * self.dtype.size


def _at(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = module[int(part)] if part.isdigit() else getattr(module, part)
    return module


def _read(folder: Folder, dtype: mx.Dtype) -> dict[str, mx.array]:
    weights: dict[str, mx.array] = {}
    try:
        for file in folder.files:
            read: Any = mx.load(str(file))
            weights.update(read)
    except RuntimeError as error:
        raise EngineError(f"The weights of {folder.name} are damaged: download the model again.") from error
    return {
        name: array.astype(dtype) if mx.issubdtype(array.dtype, mx.floating) else array
        for name, array in weights.items()
    }


def _settings(folder: Folder, shape: Architecture, tied: bool) -> dict[str, Any]:
    """Returns config.json for mlx-lm, with the rotary settings spelled so that all of its families read them:
    its Qwen2 and Llama ignore transformers 5's `rope_parameters` and would silently use a default."""
    settings = {key: value for key, value in folder.config.items() if key != "rope_parameters"}
    rope = shape.rope
    scaling: dict[str, Any] | None = None
    if rope.kind == "linear":
        scaling = {"type": "linear", "rope_type": "linear", "factor": rope.factor}
    elif rope.kind == "llama3":
        scaling = {
            "type": "llama3",
            "rope_type": "llama3",
            "factor": rope.factor,
            "low_freq_factor": rope.low_freq_factor,
            "high_freq_factor": rope.high_freq_factor,
            "original_max_position_embeddings": rope.original_context,
        }
    return settings | {
        "rope_theta": rope.theta,
        "rope_scaling": scaling,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "rms_norm_eps": shape.eps,
        "max_position_embeddings": shape.context,
        "tie_word_embeddings": tied,
    }


def _build(shape: Architecture, settings: dict[str, Any]) -> Any:
    """Returns a decoder with random weights, which take no memory because MLX never evaluates them."""
    module = import_library(f"models.{shape.family}")
    decoder = module.Model(module.ModelArgs.from_dict(settings))
    decoder.freeze()
    return decoder


def _check_rope(decoder: Any, shape: Architecture, name: str) -> None:
    """Raises EngineError if the decoder's rotary angles differ from those in config.json."""
    half, position = shape.head_dim // 2, 3
    ones = mx.concatenate([mx.ones((1, 1, 1, half)), mx.zeros((1, 1, 1, half))], -1)
    turned = np.array(decoder.model.layers[0].self_attn.rope(ones, offset=position))[0, 0, 0]
    angles = position * frequencies(shape.rope, shape.head_dim)
    if not np.allclose(turned, np.concatenate([np.cos(angles), np.sin(angles)]), atol=1e-4):
        raise EngineError(
            f"MLX reads the rotary settings of {name} otherwise than they are meant: choose the torch engine."
        )


def frequencies(rope: Rope, head_dim: int) -> Any:
    """Returns the rotary angle per position of each pair of dimensions, (head_dim / 2,), as in
    engines.torch_lora.network.decoder."""
    plain = 1.0 / rope.theta ** (np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    if rope.kind == "linear":
        return plain / rope.factor
    if rope.kind != "llama3":
        return plain
    turns = rope.original_context * plain / (2 * np.pi)
    blend = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    blend = np.clip(blend, 0.0, 1.0)
    return (1 - blend) * plain / rope.factor + blend * plain


_SAID = ("Unable to allocate", "Insufficient Memory", "maximum allowed buffer size", "out of memory")
"""Parts of MLX's out-of-memory messages on Apple's GPU. On a processor it does not survive a failed allocation,
so only the budget measured beforehand helps there."""


def free_memory(on_gpu: bool) -> int:
    """Returns the bytes an engine may use now. Apple's GPU shares the computer's memory and may use part of
    it."""
    if not on_gpu:
        return free_ram() + mx.get_cache_memory()
    most: Any = mx.device_info().get("max_recommended_working_set_size", 0)
    return max(0, min(int(most) - mx.get_active_memory(), free_ram() + mx.get_cache_memory()))


def limit_memory(budget_bytes: int, on_gpu: bool) -> None:
    """Limits MLX's memory and its cache of freed memory; on a Mac the model's weights are wired into memory."""
    mx.set_memory_limit(budget_bytes)
    mx.set_cache_limit(max(2**26, budget_bytes // 8))
    if on_gpu and mx.metal.is_available():
        most: Any = mx.device_info().get("max_recommended_working_set_size", 0)
        mx.set_wired_limit(min(budget_bytes, int(most)))


def release() -> None:
    """Frees cached memory before a smaller attempt."""
    gc.collect()
    mx.clear_cache()


def is_out_of_memory(error: Exception) -> bool:
    """Returns whether the error is MLX's for too little memory."""
    return isinstance(error, MemoryError) or any(said in str(error) for said in _SAID)


MEMORY = MemoryRecovery(is_out_of_memory, release)
