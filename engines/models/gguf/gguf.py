"""Converts a Hugging Face checkpoint to a GGUF file: Qwen2, Qwen3 and Llama, with tokenizer and chat template.

Tensors are copied one at a time, so a conversion needs memory only for the largest one. The result equals that
of llama.cpp's own converter, whose scripts are not in its Python package."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import gguf
import numpy as np
from gguf.quants import quantize

from engines.contract import EngineError, Kind
from engines.files import flush, replace, user_temp_folder
from engines.models.folder import (
    KNOWN_TYPES,
    Architecture,
    Folder,
    fingerprint,
    open_folder,
    open_weights,
    read_architecture,
)
from engines.models.gguf import header, tensors, tokenizer
from engines.models.gguf.tensors import Array, ExpectedTensor
from engines.models.gguf.tokenizer import Vocabulary
from engines.models.lora import Lora

Progress = Callable[[float], None]
"""Called with the share that is done, 0 to 1."""

KINDS: Mapping[str, tuple[gguf.GGMLQuantizationType, gguf.LlamaFileType]] = {
    "f32": (gguf.GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32),
    "f16": (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
    "bf16": (gguf.GGMLQuantizationType.BF16, gguf.LlamaFileType.MOSTLY_BF16),
    "q8_0": (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
}
SOURCE = "shoal.source"
"""Header key of a cached file: the fingerprint of the model it was converted from."""
_SOURCES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
)
CONVERSION_VERSION = 1
"""Version of the conversion: cached files of another version are converted again."""
_SPARE = 64 * 2**20
_F16_MOST = 65504.0  # the largest float16
_ROWS = 8192
"""Rows of a matrix converted at a time: a whole embedding is a gigabyte in fp32."""


def write(
    folder: Path,
    to: Path,
    kind: Kind = "f16",
    progress: Progress | None = None,
    *,
    ids_only: bool = False,
    about: Mapping[str, str] | None = None,
    adapter: Lora | None = None,
) -> None:
    """Writes the model in `folder` as one GGUF file, which gets its name only when it is complete. With
    `ids_only` the tokenizer is left out, so that the file works on token ids only: writing and reading a
    vocabulary of 50,000 words takes longer than the weights. Otherwise a tokenizer unknown to llama.cpp is
    refused. `about` holds extra header strings. An `adapter` is added to the weights before they are rounded.
    Raises EngineError, AdapterError."""
    model = open_folder(folder)
    shape = architecture(model)
    tensors.check(shape, model.name)
    vocabulary = None if ids_only else tokenizer.read(model, shape.vocabulary)
    partial = to.with_name(f".writing-{os.getpid()}-{token_hex(4)}-{to.name}")
    with _told(to):
        to.parent.mkdir(parents=True, exist_ok=True)
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(open_weights(file)) for file in model.files]
            plan = _Plan(model, shape, files, kind, adapter)
            _check_space(to, plan.bytes)
            with _told(to):  # inside, because open_weights takes any OSError for damaged weights
                writer = _header(model, shape, vocabulary, kind, about or {})
                try:
                    plan.write(writer, partial, progress)
                finally:
                    writer.close()
        with _told(to):
            flush(partial)
            replace(partial, to)
    finally:
        partial.unlink(missing_ok=True)


def write_vocabulary(model: Folder, to: Path) -> int:
    """Writes only the tokenizer, no weights, and returns its number of tokens. Raises EngineError."""
    shape = architecture(model)
    writer = _header(model, shape, tokenizer.read(model, shape.vocabulary), "f32", {})
    try:
        with _told(to):
            writer.write_header_to_file(to)
            writer.write_kv_data_to_file()
            writer.write_ti_data_to_file()
    finally:
        writer.close()
    return shape.vocabulary


@contextmanager
def _told(to: Path) -> Iterator[None]:
    """Converts the system's errors in the block into an EngineError with a sentence."""
    try:
        yield
    except OSError as error:
        raise EngineError(
            f"{to.name} couldn't be written to {to.parent} ({error.strerror}): free some space or choose "
            "another folder."
        ) from error


def cached(folder: Path, kind: Kind, cache: Path | None = None, progress: Progress | None = None) -> Path:
    """Returns the model as a GGUF file in `cache` (default: cache_folder), converting it if the file is missing
    or damaged. For engines: the file works on token ids only, so any tokenizer will do. Raises EngineError."""
    model = open_folder(folder)
    mark = source(model)
    readable = re.sub(r"[^A-Za-z0-9._]+", "-", model.name).strip("-.")[-40:] or "model"
    path = (cache or cache_folder()) / f"{readable}-{mark[:16]}-{kind}.gguf"
    if path.is_file():
        try:
            if header.read(path).values.get(SOURCE) == mark:
                return path
        except EngineError:
            pass  # made again below, under the same name
    write(folder, path, kind, progress, ids_only=True, about={SOURCE: mark})
    return path


def cache_folder() -> Path:
    """Returns the folder of converted models: in the data folder that SHOAL_HOME names, else in this user's
    part of the system's temporary folder."""
    home = os.environ.get("SHOAL_HOME", "")
    if home:
        return Path(home).expanduser() / "cache" / "gguf"
    return user_temp_folder() / "gguf"


def architecture(model: Folder) -> Architecture:
    """Returns the decoder of a folder. Raises EngineError if it cannot be converted for llama.cpp here."""
    shape = read_architecture(model.config)
    if shape is None and model.config.get("model_type") in KNOWN_TYPES:
        raise EngineError(
            f"{model.name} attends or turns positions in a way that isn't converted here (a sliding window, a "
            "rotary scaling): use the torch engine, or export it as peft or merged."
        )
    if shape is None:
        kind = model.config.get("model_type", "of an unknown kind")
        raise EngineError(
            f"{model.name} is {kind}, and only Qwen2, Qwen3 and Llama models can become GGUF files here: "
            "use the torch engine, or export it as peft or merged."
        )
    return shape


def source(model: Folder) -> str:
    """Returns a fingerprint of everything that a GGUF file is made from, and of the conversion's version."""
    digest = hashlib.sha256(f"{CONVERSION_VERSION} {fingerprint(model)}".encode())
    for file in _SOURCES:
        path = model.path / file
        digest.update(path.read_bytes() if path.is_file() else b"\0")
    return digest.hexdigest()


def _header(
    model: Folder, shape: Architecture, vocabulary: Vocabulary | None, kind: Kind, about: Mapping[str, str]
) -> gguf.GGUFWriter:
    writer = gguf.GGUFWriter(None, shape.family)
    for key, value in about.items():
        writer.add_string(key, value)
    writer.add_type("model")
    writer.add_name(model.name)
    writer.add_file_type(KINDS[kind][1])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_block_count(shape.layers)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(shape.rope.theta)
    if shape.rope.kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(shape.rope.factor)
    writer.add_layer_norm_rms_eps(shape.eps)
    writer.add_vocab_size(shape.vocabulary)
    if vocabulary is None:
        writer.add_tokenizer_model("none")
    else:
        vocabulary.add_to(writer)
    return writer


class _Plan:
    """All tensors of one conversion, read from open weight files."""

    def __init__(
        self, model: Folder, shape: Architecture, files: list[Any], kind: Kind, adapter: Lora | None
    ) -> None:
        if adapter is not None:
            adapter.check({name: base.shape for name, base in tensors.linears(shape).items()})
        self._adapter = adapter
        self._model = model
        self._shape = shape
        self._kind = kind
        self._holders = {name: file for file in files for name in file.keys()}  # noqa: SIM118 - not a dict
        self._tensors = [tensor for tensor in tensors.expected(shape) if self._has(tensor)]
        known = {tensor.name for tensor in self._tensors} | {"lm_head.weight"}
        stray = [name for name in self._holders if name not in known and "rotary_emb" not in name]
        if stray:
            raise EngineError(
                f"{model.name} has weights that llama.cpp doesn't know ({min(stray)}): use the torch engine."
            )
        self._types = {tensor.name: self._type(tensor) for tensor in self._tensors}
        self.bytes = sum(self._bytes(tensor) for tensor in self._tensors)

    def _has(self, tensor: ExpectedTensor) -> bool:
        if tensor.name not in self._holders:
            if tensor.optional:
                return False
            raise EngineError(f"{self._model.name} lacks the weights {tensor.name}: download the model again.")
        if tuple(self._holders[tensor.name].get_slice(tensor.name).get_shape()) != tensor.shape:
            raise EngineError(
                f"{self._model.name} has {tensor.name} in another shape than its config.json says: "
                "download the model again."
            )
        return True

    def _type(self, tensor: ExpectedTensor) -> gguf.GGMLQuantizationType:
        """Returns the number format of a tensor: norms and biases stay fp32; rows that do not fill blocks of
        q8_0 become f16."""
        wanted = KINDS[self._kind][0]
        if len(tensor.shape) == 1:
            return gguf.GGMLQuantizationType.F32
        if wanted is gguf.GGMLQuantizationType.Q8_0 and tensor.shape[-1] % gguf.GGML_QUANT_SIZES[wanted][0]:
            return gguf.GGMLQuantizationType.F16
        return wanted

    def _bytes(self, tensor: ExpectedTensor) -> int:
        block, block_bytes = gguf.GGML_QUANT_SIZES[self._types[tensor.name]]
        return int(np.prod(tensor.shape)) // block * block_bytes

    def write(self, writer: gguf.GGUFWriter, to: Path, progress: Progress | None) -> None:
        factors = tensors.rope_factors(self._shape)
        if factors is not None:
            writer.add_tensor_info(tensors.ROPE_FACTORS, factors.shape, factors.dtype, factors.nbytes)
        for tensor in self._tensors:
            kind = self._types[tensor.name]
            writer.add_tensor_info(
                tensor.target, tensor.shape, np.dtype(np.float32), self._bytes(tensor), raw_dtype=kind
            )
        writer.write_header_to_file(to)
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        if factors is not None:
            writer.write_tensor_data(factors)
        done = 0
        for tensor in self._tensors:
            writer.write_tensor_data(self._converted(tensor))
            done += self._bytes(tensor)
            if progress is not None:
                progress(done / self.bytes)

    def _converted(self, tensor: ExpectedTensor) -> Array:
        read: Any = self._holders[tensor.name].get_tensor(tensor.name)
        if not read.is_floating_point():
            raise EngineError(
                f"{self._model.name} is quantised ({tensor.name}), and that can't be converted: take the "
                "unquantised model."
            )
        layer = tensor.name.removesuffix(".weight")
        if tensor.heads or (self._adapter is not None and layer in self._adapter.pairs):
            return self._rounded(tensor, self._changed(tensor, layer, read.float().numpy()))
        parts = [self._rounded(tensor, rows.float().numpy()) for rows in read.split(_ROWS)]
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def _changed(self, tensor: ExpectedTensor, layer: str, values: Array) -> Array:
        if self._adapter is not None and layer in self._adapter.pairs:
            values = values + self._adapter.delta(layer)
        return tensors.interleaved(values, tensor.heads)

    def _rounded(self, tensor: ExpectedTensor, values: Array) -> Array:
        kind = self._types[tensor.name]
        if kind is gguf.GGMLQuantizationType.F16:
            values = values.clip(-_F16_MOST, _F16_MOST)
        return np.ascontiguousarray(quantize(values, kind))


def _check_space(to: Path, needed: int) -> None:
    free = shutil.disk_usage(to.parent).free
    if free < needed + _SPARE:
        raise EngineError(
            f"{to.name} needs {(needed + _SPARE) >> 20} MB and {free >> 20} MB are free in {to.parent}: "
            "free up some space or choose another folder."
        )
