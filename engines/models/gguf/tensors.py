"""The tensors of a decoder, their names in GGUF, and the row order that llama.cpp expects; and adapters as GGUF
LoRA files.

llama.cpp rotates neighbouring dimensions of a Llama model's queries and keys where transformers rotates the two
halves of a head, so their rows are reordered. Qwen models rotate the same way in both.

Of LoRA adapters llama.cpp scales by `alpha / rank`, and B of queries and keys is reordered like its base."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from engines.contract import EngineError
from engines.models import lora
from engines.models.folder import Architecture, Rope

Array = NDArray[Any]

_ARCHITECTURES = {
    "qwen2": gguf.MODEL_ARCH.QWEN2,
    "qwen3": gguf.MODEL_ARCH.QWEN3,
    "llama": gguf.MODEL_ARCH.LLAMA,
}
ROPE_FACTORS = "rope_freqs.weight"
"""Tensor in Llama files only: the divisor of each rotary frequency (Llama 3's scaling)."""


@dataclass(frozen=True)
class ExpectedTensor:
    """A tensor that a checkpoint has: its Hugging Face name, its GGUF name, its shape."""

    name: str
    target: str
    shape: tuple[int, ...]
    heads: int = 0
    """Number of heads whose rows are reordered, 0 if they are not."""
    optional: bool = False


class Names:
    """Maps Hugging Face names to GGUF's, for one architecture."""

    def __init__(self, shape: Architecture) -> None:
        self._shape = shape
        self._map = gguf.get_tensor_name_map(_ARCHITECTURES[shape.family], shape.layers)

    def target(self, name: str) -> str | None:
        """Returns the GGUF name, None if the architecture has no such tensor."""
        return self._map.get_name(name, try_suffixes=(".weight", ".bias"))

    def heads(self, name: str) -> int:
        """Returns the number of heads whose rows are reordered in this tensor, or 0."""
        if self._shape.family != "llama":
            return 0
        if ".q_proj." in name:
            return self._shape.heads
        return self._shape.kv_heads if ".k_proj." in name else 0


def check(shape: Architecture, model: str) -> None:
    """Raises EngineError if llama.cpp would compute something other than this model."""
    if shape.family == "qwen2" and shape.heads * shape.head_dim != shape.hidden:
        raise _unsupported(model, "its heads are wider than llama.cpp expects of a Qwen2 model")
    if shape.rope.kind == "llama3" and shape.family != "llama":
        raise _unsupported(model, "llama.cpp knows Llama 3's rotary scaling in Llama models only")


def _unsupported(model: str, why: str) -> EngineError:
    return EngineError(
        f"{model} can't become a GGUF file ({why}): use the torch engine, or export it as peft or merged."
    )


def expected(shape: Architecture) -> Iterator[ExpectedTensor]:
    """Yields all tensors in the order in which they are written, embedding first. Biases are optional."""
    names = Names(shape)
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim

    def one(name: str, *size: int, optional: bool = False) -> ExpectedTensor:
        target = names.target(name)
        if target is None:  # llama.cpp has no place for it, so a checkpoint must not have it either
            raise _unsupported(shape.family, f"llama.cpp has no {name}")
        return ExpectedTensor(name, target, size, names.heads(name), optional)

    yield one("model.embed_tokens.weight", shape.vocabulary, shape.hidden)
    for index in range(shape.layers):
        at, mlp = f"model.layers.{index}.self_attn", f"model.layers.{index}.mlp"
        yield one(f"model.layers.{index}.input_layernorm.weight", shape.hidden)
        if shape.family == "qwen3":
            yield one(f"{at}.q_norm.weight", shape.head_dim)
            yield one(f"{at}.k_norm.weight", shape.head_dim)
        for part, rows in (("q", queries), ("k", keys), ("v", keys)):
            yield one(f"{at}.{part}_proj.weight", rows, shape.hidden)
            yield one(f"{at}.{part}_proj.bias", rows, optional=True)
        yield one(f"{at}.o_proj.weight", shape.hidden, queries)
        yield one(f"model.layers.{index}.post_attention_layernorm.weight", shape.hidden)
        for part in ("gate", "up"):
            yield one(f"{mlp}.{part}_proj.weight", shape.inner, shape.hidden)
        yield one(f"{mlp}.down_proj.weight", shape.hidden, shape.inner)
        if shape.family == "llama":
            yield one(f"{at}.o_proj.bias", shape.hidden, optional=True)
            for part, rows in (("gate", shape.inner), ("up", shape.inner), ("down", shape.hidden)):
                yield one(f"{mlp}.{part}_proj.bias", rows, optional=True)
    yield one("model.norm.weight", shape.hidden)
    if not shape.tied:
        yield one("lm_head.weight", shape.vocabulary, shape.hidden, optional=True)


@cache
def linears(shape: Architecture) -> Mapping[str, ExpectedTensor]:
    """Returns the matrices that an adapter can change, by layer name."""
    return {tensor.name.removesuffix(".weight"): tensor for tensor in expected(shape) if len(tensor.shape) == 2}


def interleaved(rows: Array, heads: int) -> Array:
    """Returns rows (heads * head_dim, ...) with each head's two halves interleaved, as llama.cpp's Llama
    rotates them.

    >>> interleaved(np.arange(8), 2).tolist()
    [0, 2, 1, 3, 4, 6, 5, 7]
    """
    if not heads:
        return rows
    halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def halved(rows: Array, heads: int) -> Array:
    """Reverts `interleaved`.

    >>> halved(interleaved(np.arange(8), 2), 2).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    if not heads:
        return rows
    pairs = rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def rope_factors(shape: Architecture) -> Array | None:
    """Returns the divisor of each rotary frequency, (head_dim / 2,) fp32, None without scaling."""
    if shape.rope.kind != "llama3":
        return None
    return _slowed(shape.rope, shape.head_dim)


def _slowed(rope: Rope, head_dim: int) -> Array:
    """Returns Llama 3's divisors: 1 for fast frequencies, `factor` for slow ones, blended between (Llama 3.1
    reference code)."""
    plain = rope.theta ** -(np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    turns = rope.original_context * plain / (2 * np.pi)
    blend = ((turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)).clip(0.0, 1.0)
    factors: Array = (1 / ((1 - blend) / rope.factor + blend)).astype(np.float32)
    return factors


def write(peft: Path, architecture: Architecture, to: Path, *, half: bool = False) -> None:
    """Converts PEFT's folder to a GGUF LoRA file. Raises AdapterError for what llama.cpp could not apply."""
    state, alpha = lora.read_state(peft)
    write_state(state, alpha=alpha, architecture=architecture, to=to, half=half)


def write_state(
    state: Mapping[str, Array], *, alpha: float, architecture: Architecture, to: Path, half: bool = False
) -> None:
    """Writes A and B of every layer, (rank, in) and (out, rank) fp32 under PEFT's names, as a GGUF LoRA file.
    `half` writes fp16, half the size. Raises AdapterError for layers that the architecture does not have, and
    EngineError if the file cannot be written."""
    layers = linears(architecture)
    adapter = lora.Lora(lora.pairs(state), alpha)
    adapter.check({name: base.shape for name, base in layers.items()})
    writer = gguf.GGUFWriter(to, architecture.family)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    for layer, pair in adapter.pairs.items():
        base = layers[layer]
        for suffix, matrix in (("lora_a", pair.a), ("lora_b", interleaved(pair.b, base.heads))):
            writer.add_tensor(
                f"{base.target}.{suffix}", np.ascontiguousarray(matrix, np.float16 if half else np.float32)
            )
    try:
        try:
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
        finally:
            writer.close()
    except OSError as error:
        raise EngineError(
            f"The adapter couldn't be written to {to} ({error.strerror}): free some space."
        ) from error
