"""Converts a GGUF file to a model folder: config.json from its header, for the three families that can be
trained here, and the weights.

From a GGUF file to a model folder as Hugging Face lays it out: what llama.cpp runs becomes what can learn.

Weights are written some rows at a time, so a conversion needs little memory whatever the file's size. Rounded
ones become fp16: a quantised weight is a scale in fp16 times a few bits, which fp16 holds to 2^-12, eight times
as well as bf16 and in half the space of fp32. Weights that are bf16 or fp32 in the file stay that, and so do
norms and biases, so nothing else is rounded.

llama.cpp then samples from q8_0 made of this folder, not from the file itself: an adapter cannot be merged into
four-bit weights, and beside them 8 rows of 64 tokens came at 65 tokens a second, where q8_0 with the adapter
merged made 97 (SmolLM2 135M in Q4_1, one thread), both alike far from the unrounded model."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from engines.contract import EngineError
from engines.models.folder import KNOWN_TYPES, Architecture, Rope, Shape, read_architecture
from engines.models.gguf import header, tokenizer
from engines.models.gguf.header import TOKENS_KEY, Header
from engines.models.gguf.tensors import ROPE_FACTORS, Array, ExpectedTensor, expected, halved, rope_factors

_CLASSES = {"qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "llama": "LlamaForCausalLM"}
_FACTORS = (8.0, 32.0, 4.0, 16.0)
"""Context scaling factors of Llama 3.1, Llama 3.2 and models derived from them."""
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
"""Header keys of models that compute something not implemented here."""
_MAX = 2**20
"""Maximum accepted size; the widest layers have a tenth of that."""
_MAX_CONTEXT = 16 * _MAX
_MAX_BLOCKS = 1000
"""Maximum accepted number of layers; the deepest models have 126."""


def family(header: Header, name: str, pieces: int = 1) -> str:
    """Returns the model family from the header. `pieces` is the number of parts of a split file. Raises
    EngineError if it cannot be trained here."""
    if header.values.get("general.type", "model") != "model":
        raise EngineError(f"{name} is a part of a model, not a whole one: choose the file of the model itself.")
    if header.values.get("split.count", pieces) not in (0, 1):
        raise EngineError(f"{name} is one of several pieces of a model: choose one that is a single file.")
    found = header.values.get("general.architecture")
    if found not in KNOWN_TYPES:
        what = found if isinstance(found, str) and found.isascii() and found.isprintable() else "unknown"
        raise EngineError(
            f"{name} is of the family {what[:40]}, and files of the families Qwen2, Qwen3 and Llama can learn "
            "here: choose one of those."
        )
    return str(found)


def config(header: Header, factors: np.ndarray[Any, Any] | None, name: str) -> dict[str, Any]:
    """Returns config.json. `factors` is the file's `rope_freqs.weight`, None without one. Raises
    EngineError."""
    values = _Values(header, family(header, name), name)
    hidden, heads = values.whole("embedding_length"), values.whole("attention.head_count")
    layers = values.whole("block_count", most=_MAX_BLOCKS)
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
        "max_position_embeddings": values.whole("context_length", most=_MAX_CONTEXT),
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
    """Returns the sizes from the start of a header. It does not say whether the head is tied to the embedding;
    that is assumed not to be so. Raises EngineError."""
    values = _Values(opening, family(opening, name), name)
    hidden, heads = values.whole("embedding_length"), values.whole("attention.head_count")
    words = opening.values.get(TOKENS_KEY, 0)
    if type(words) is not int:
        raise _unlike(name)
    return Shape(
        family=values.family,  # type: ignore[arg-type]
        hidden=hidden,
        layers=values.whole("block_count", most=_MAX_BLOCKS),
        heads=heads,
        kv_heads=values.whole("attention.head_count_kv", heads),
        head_dim=values.whole("attention.key_length", max(1, hidden // heads)),
        inner=values.whole("feed_forward_length"),
        vocabulary=min(_MAX, max(1, words)),
        context=values.whole("context_length", most=_MAX_CONTEXT),
        tied=False,
    )


def architecture(settings: Mapping[str, Any], header: Header, name: str) -> Architecture:
    """Returns the decoder after checking its tensors: none is missing or unknown, and all have their shapes.
    Raises EngineError."""
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
    """Reads numbers of a header under the family's own keys. Raises EngineError for a missing or implausible
    number."""

    def __init__(self, header: Header, family: str, name: str) -> None:
        self.header, self.family, self.name = header, family, name
        for key in _CHANGES:
            if header.values.get(f"{family}.{key}"):
                self.refuse(key)

    def whole(self, key: str, default: int | None = None, most: int = _MAX) -> int:
        found = self.header.values.get(f"{self.family}.{key}", default)
        if type(found) is not int or not 1 <= found <= most:
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
    """Returns a short name for display, in one line: the file's own, or the one in its header if the file is
    named by a digest."""
    said = header.values.get("general.name")
    own = path.suffix.lower() == ".gguf" or not isinstance(said, str)
    text = model_stem(path) if own else str(said)
    kept = re.sub(r"[^\w .,:()+-]", "", text).strip()
    return (kept or path.stem)[:60]


def model_stem(path: Path) -> str:
    """Returns a file's stem, or its folder's name if the file is only called "model", as all of Jan's are.

    >>> model_stem(Path("models/Qwen3-0.6B/model.gguf")), model_stem(Path("models/Qwen3-0.6B-Q8_0.gguf"))
    ('Qwen3-0.6B', 'Qwen3-0.6B-Q8_0')
    """
    return path.parent.name if path.stem.casefold() in ("model", "ggml-model") else path.stem


Progress = Callable[[float], None]

READABLE = {
    GGMLQuantizationType[name]
    for name in (
        *("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"),
        *("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"),
    )
}
"""Number formats that the gguf package can decode and that are tested against llama.cpp."""
_NUMBERS = 2**21
"""Maximum weights decoded at a time."""
_F16_MOST = 65504.0  # the largest float16
_OUT = {"F32": 4, "F16": 2, "BF16": 2}


class UnpackPlan:
    """The plan for converting one file, made from its header before any weight is read."""

    def __init__(self, path: Path) -> None:
        """Reads the header. Raises EngineError, one sentence, for a file that cannot be trained."""
        self.path = path
        self.header: Header = header.read(path, tokenizer.ARRAYS)
        name = path.name
        family(self.header, name)
        self.title = title(self.header, path)
        self.config = config(self.header, self._factors(), name)
        self.shape: Architecture = architecture(self.config, self.header, name)
        for kind in {kind for _, kind in self.header.tensors.values()} - READABLE:
            raise EngineError(
                f"{name} holds weights in the format {kind.name}, which isn't read here: choose the same "
                "model in Q8_0, Q4_K_M or F16."
            )
        self.words = tokenizer.read_tokenizer(self.header, self.shape.vocabulary, name)
        self.config["eos_token_id"] = list(self.words.stops)
        self.tensors = [one for one in expected(self.shape) if one.target in self.header.tensors]
        self.config["dtype"] = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}[
            _out(self.header.tensors["blk.0.ffn_up.weight"][1], 2)
        ]

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights that will be written."""
        return sum(self._bytes(tensor) for tensor in self.tensors)

    def _factors(self) -> Array | None:
        found = self.header.tensors.get(ROPE_FACTORS)
        if found is None:
            return None
        shape, kind = found
        if kind is not GGMLQuantizationType.F32 or len(shape) != 1 or shape[0] > 2**12:
            raise EngineError(f"{self.path.name} has damaged rope_freqs: download the file again.")
        start, length = self.header.places[ROPE_FACTORS]
        with self.path.open("rb") as file:
            file.seek(start)
            return np.frombuffer(file.read(length), np.float32)

    def _kind(self, tensor: ExpectedTensor) -> str:
        return _out(self.header.tensors[tensor.target][1], len(tensor.shape))

    def _bytes(self, tensor: ExpectedTensor) -> int:
        return int(np.prod(tensor.shape)) * _OUT[self._kind(tensor)]

    def write(self, folder: Path, progress: Progress | None = None) -> None:
        """Writes the model into an empty folder. Raises EngineError for damaged weights, OSError if the disk
        refuses."""
        for name, text in self.words.files.items():
            (folder / name).write_text(text, "utf-8")
        (folder / "config.json").write_text(json.dumps(self.config, indent=1), "utf-8")
        with self.path.open("rb") as source, (folder / "model.safetensors").open("wb") as to:
            self._weights(source, to, progress)
            to.flush()
            os.fsync(to.fileno())

    def _weights(self, source: IO[bytes], to: IO[bytes], progress: Progress | None) -> None:
        """Writes a safetensors file: the length of the table, the table, and the numbers."""
        table: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        at = 0
        for tensor in self.tensors:
            size = self._bytes(tensor)
            table[tensor.name] = {
                "dtype": self._kind(tensor),
                "shape": tensor.shape,
                "data_offsets": [at, at + size],
            }
            at += size
        text = json.dumps(table).encode()
        text += b" " * (-len(text) % 8)
        to.write(len(text).to_bytes(8, "little") + text)
        done = 0
        for tensor in self.tensors:
            kind = self._kind(tensor)
            for rows in self._rows(source, tensor):
                to.write(_stored(rows, kind))
                done += rows.size * _OUT[kind]
                if progress is not None:
                    progress(done / at)

    def _rows(self, source: IO[bytes], tensor: ExpectedTensor) -> Iterator[Array]:
        """Yields a tensor some rows at a time, fp32, in transformers' row order."""
        kind = self.header.tensors[tensor.target][1]
        start, _ = self.header.places[tensor.target]
        shape = tensor.shape if len(tensor.shape) == 2 else (1, *tensor.shape)
        block, block_bytes = GGML_QUANT_SIZES[kind]
        row_bytes = shape[1] // block * block_bytes
        step = max(1, _NUMBERS // shape[1])
        if tensor.heads:  # whole heads, because their rows are permuted
            step = shape[0] if len(tensor.shape) == 2 else 1
        source.seek(start)
        for first in range(0, shape[0], step):
            count = min(step, shape[0] - first)
            raw = source.read(count * row_bytes)
            if len(raw) != count * row_bytes:
                raise self._damaged(tensor)
            rows = _numbers(raw, kind).reshape(count, shape[1])
            if not np.isfinite(rows).all():
                raise self._damaged(tensor)
            if tensor.heads:
                rows = halved(rows if len(tensor.shape) == 2 else rows[0], tensor.heads)
            yield rows

    def _damaged(self, tensor: ExpectedTensor) -> EngineError:
        return EngineError(
            f"The weights {tensor.target} in {self.path.name} are damaged: download the file again."
        )


def _out(kind: GGMLQuantizationType, dimensions: int) -> str:
    """Returns the number format in which a tensor is written."""
    if kind in (GGMLQuantizationType.F32, GGMLQuantizationType.BF16):
        return kind.name
    return "F16" if dimensions == 2 else "F32"


def _numbers(raw: bytes, kind: GGMLQuantizationType) -> Array:
    with np.errstate(all="ignore"):  # what overflows is damaged, and is found below
        if kind is GGMLQuantizationType.F32:
            return np.frombuffer(raw, np.float32)
        if kind is GGMLQuantizationType.F16:
            return np.frombuffer(raw, np.float16).astype(np.float32)
        found: Array = dequantize(np.frombuffer(raw, np.uint8), kind)
        return found


def _stored(values: Array, kind: str) -> bytes:
    if kind == "F16":
        return values.clip(-_F16_MOST, _F16_MOST).astype(np.float16).tobytes()
    if kind == "BF16":  # it was bf16: the lower half of each number is zero
        return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return np.ascontiguousarray(values, np.float32).tobytes()
