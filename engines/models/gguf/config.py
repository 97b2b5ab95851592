"""From a GGUF header to config.json, for the three families that are trained here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from engines.contract import EngineError
from engines.models.architecture import KNOWN, Architecture, Rope, read_architecture
from engines.models.gguf.header import WORDS, Header
from engines.models.gguf.tensors import ROPE_FACTORS, expected, rope_factors
from engines.models.needs import Shape

_CLASSES = {"qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "llama": "LlamaForCausalLM"}
_FACTORS = (8.0, 32.0, 4.0, 16.0)
"""By which Llama 3.1, Llama 3.2 and models made of them stretch their context."""
_CHANGES = (
    "attention.sliding_window",
    "attention.scale",
    "attention.clamp_kqv",
    "attention.max_alibi_bias",
    "logit_scale",
    "embedding_scale",
    "residual_scale",
    "expert_count",
)
"""With any of these the model computes something that is not computed here."""
_MOST = 2**20
"""Of any size: the widest layers have a tenth of that."""


def family(header: Header, name: str) -> str:
    """What the file says it is, by header alone. Raises EngineError where that cannot be trained here."""
    if header.values.get("general.type", "model") != "model":
        raise EngineError(f"{name} is a part of a model, not a whole one: choose the file of the model itself.")
    if header.values.get("split.count", 1) not in (0, 1):
        raise EngineError(f"{name} is one of several pieces of a model: choose one that is a single file.")
    found = header.values.get("general.architecture")
    if found not in KNOWN:
        what = found if isinstance(found, str) and found.isascii() and found.isprintable() else "unknown"
        raise EngineError(
            f"{name} is of the family {what[:40]}, and files of the families Qwen2, Qwen3 and Llama can learn "
            "here: choose one of those."
        )
    return str(found)


def config(header: Header, factors: np.ndarray[Any, Any] | None, name: str) -> dict[str, Any]:
    """config.json. `factors` is what the file has under `rope_freqs.weight`. Raises EngineError."""
    values = _Values(header, family(header, name), name)
    hidden, heads = values.whole("embedding_length"), values.whole("attention.head_count")
    layers = values.whole("block_count")
    if layers > len(header.tensors):
        values.refuse("block_count")
    head_dim = values.whole("attention.key_length", hidden // heads)
    if values.whole("rope.dimension_count", head_dim) != head_dim or head_dim % 2:
        values.refuse("rope.dimension_count")
    if values.whole("attention.value_length", head_dim) != head_dim:
        values.refuse("attention.value_length")
    embedding = header.tensors.get("token_embd.weight", ((0, 0), None))[0]
    found = {
        "architectures": [_CLASSES[values.family]],
        "model_type": values.family,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": values.whole("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "intermediate_size": values.whole("feed_forward_length"),
        "vocab_size": embedding[0],
        "max_position_embeddings": values.whole("context_length"),
        "rms_norm_eps": values.number("attention.layer_norm_rms_epsilon"),
        "tie_word_embeddings": "output.weight" not in header.tensors,
        "rope_theta": values.number("rope.freq_base", 10_000.0),
        "use_cache": True,
    }
    if values.family == "llama":
        found["attention_bias"] = "blk.0.attn_q.bias" in header.tensors
        found["mlp_bias"] = "blk.0.ffn_up.bias" in header.tensors
    elif values.family == "qwen3":
        found["attention_bias"] = "blk.0.attn_q.bias" in header.tensors
    found["rope_parameters"] = _rope(values, found, factors)
    return found


def rough_shape(opening: Header, name: str) -> Shape:
    """Sizes by the opening of a header alone, which does not tell whether the head is the embedding: it is
    taken for one of its own. Raises EngineError."""
    values = _Values(opening, family(opening, name), name)
    hidden, heads = values.whole("embedding_length"), values.whole("attention.head_count")
    words = opening.values.get(WORDS, 0)
    return Shape(
        family=values.family,  # type: ignore[arg-type]
        hidden=hidden,
        layers=values.whole("block_count"),
        heads=heads,
        kv_heads=values.whole("attention.head_count_kv", heads),
        head_dim=values.whole("attention.key_length", max(1, hidden // heads)),
        inner=values.whole("feed_forward_length"),
        vocabulary=min(_MOST, max(1, int(words))),
        context=values.whole("context_length"),
        tied=False,
    )


def architecture(settings: Mapping[str, Any], header: Header, name: str) -> Architecture:
    """The decoder, after its tensors were held against it: none lacks, none is left over, all have their
    shapes. Raises EngineError."""
    shape = read_architecture(settings)
    if shape is None or shape.heads % shape.kv_heads or not shape.vocabulary:
        raise _unlike(name)
    wanted = {tensor.target: tensor for tensor in expected(shape)}
    for target, tensor in wanted.items():
        if target not in header.tensors:
            if not tensor.optional:
                raise EngineError(f"{name} lacks the weights {target}: download the file again.")
        elif header.tensors[target][0] != tensor.shape:
            raise EngineError(f"{name} has {target} in another shape than its header says: download it again.")
    if stray := set(header.tensors) - set(wanted) - {ROPE_FACTORS}:
        raise EngineError(
            f"{name} has weights that aren't known here ({min(stray)[:80]!a}): choose another model."
        )
    return shape


def _rope(values: _Values, settings: Mapping[str, Any], factors: np.ndarray[Any, Any] | None) -> dict[str, Any]:
    plain = {"rope_type": "default", "rope_theta": settings["rope_theta"]}
    kind = values.header.values.get(f"{values.family}.rope.scaling.type", "none")
    if kind == "linear":
        return {**plain, "rope_type": "linear", "factor": values.number("rope.scaling.factor")}
    if kind != "none":
        values.refuse("rope.scaling.type")
    if factors is None:
        return plain
    for factor in _FACTORS:
        rope = Rope(theta=settings["rope_theta"], kind="llama3", factor=factor)
        stretched = {
            "rope_type": "llama3",
            "factor": factor,
            "low_freq_factor": rope.low_freq_factor,
            "high_freq_factor": rope.high_freq_factor,
            "original_max_position_embeddings": rope.original_context,
        }
        shape = read_architecture({**settings, "rope_parameters": {**plain, **stretched}})
        known = rope_factors(shape) if shape is not None else None
        if known is not None and known.shape == factors.shape and np.allclose(known, factors, rtol=1e-3):
            return {**plain, **stretched}
    raise EngineError(f"{values.name} turns positions in a way that isn't known here: choose another model.")


class _Values:
    """Numbers of a header under the family's own keys."""

    def __init__(self, header: Header, family: str, name: str) -> None:
        self.header, self.family, self.name = header, family, name
        for key in _CHANGES:
            if header.values.get(f"{family}.{key}"):
                self.refuse(key)

    def whole(self, key: str, default: int | None = None) -> int:
        found = self.header.values.get(f"{self.family}.{key}", default)
        if type(found) is not int or not 1 <= found <= _MOST * 16:
            self.refuse(key)
        return found

    def number(self, key: str, default: float | None = None) -> float:
        found = self.header.values.get(f"{self.family}.{key}", default)
        if not isinstance(found, float | int) or not 0 < found < 1e12:
            self.refuse(key)
        return float(f"{found:.7g}")  # fp32 in the file: 1e-5 is meant, not 9.999999747e-06

    def refuse(self, key: str) -> NoReturn:
        raise EngineError(
            f"{self.name} can't be read here, because of what it says of {self.family}.{key}: choose another "
            "model."
        )


def _unlike(name: str) -> EngineError:
    return EngineError(f"{name} computes in a way that isn't known here: choose another model.")


def title(header: Header, path: Path) -> str:
    """Its file's name, as its owner knows it, or the model's own where that is a digest, as one short line."""
    said = header.values.get("general.name")
    named = path.suffix.lower() == ".gguf" or not isinstance(said, str)
    text = path.stem if named else str(said)
    kept = re.sub(r"[^\w .,:()+-]", "", text).strip()
    return (kept or path.stem)[:60]
