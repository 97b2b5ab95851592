"""From a GGUF file to a model folder as Hugging Face lays it out: what llama.cpp runs becomes what can learn.

Weights are written some rows at a time, so a conversion needs little memory whatever the file's size. Rounded
ones become fp16: a quantised weight is a scale in fp16 times a few bits, which fp16 holds to 2^-12, eight times
as well as bf16 and in half the space of fp32. Weights that are bf16 or fp32 in the file stay that, and so do
norms and biases, so nothing else is rounded.

llama.cpp then samples from q8_0 made of this folder, not from the file itself: an adapter cannot be merged into
four-bit weights, and beside them 8 rows of 64 tokens came at 65 tokens a second, where q8_0 with the adapter
merged made 97 (SmolLM2 135M in Q4_1, one thread), both alike far from the unrounded model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from engines.contract import EngineError
from engines.models.architecture import Architecture
from engines.models.gguf import config, header, words
from engines.models.gguf.header import Header
from engines.models.gguf.tensors import ROPE_FACTORS, Array, ExpectedTensor, expected, halved

Progress = Callable[[float], None]

READABLE = {
    GGMLQuantizationType[name]
    for name in (
        *("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"),
        *("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"),
    )
}
"""Number formats that the gguf package turns back into numbers and that are tested against llama.cpp."""
_NUMBERS = 2**21
"""Weights that are turned at a time."""
_F16_MOST = 65504.0
_OUT = {"F32": 4, "F16": 2, "BF16": 2}


class UnpackPlan:
    """What becomes of one file: read and judged from its header, before any weight is."""

    def __init__(self, path: Path) -> None:
        """Raises EngineError, one sentence, for a file that cannot learn here."""
        self.path = path
        self.header: Header = header.read(path, words.ARRAYS)
        name = path.name
        config.family(self.header, name)
        self.title = config.title(self.header, path)
        self.config = config.config(self.header, self._factors(), name)
        self.shape: Architecture = config.architecture(self.config, self.header, name)
        for kind in {kind for _, kind in self.header.tensors.values()} - READABLE:
            raise EngineError(
                f"{name} holds weights in the format {kind.name}, which isn't read here: choose the same "
                "model in Q8_0, Q4_K_M or F16."
            )
        self.words = words.read(self.header, self.shape.vocabulary, name)
        self.config["eos_token_id"] = list(self.words.stops)
        self.tensors = [one for one in expected(self.shape) if one.target in self.header.tensors]
        self.config["dtype"] = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}[
            _out(self.header.tensors["blk.0.ffn_up.weight"][1], 2)
        ]

    @property
    def weight_bytes(self) -> int:
        """The bytes of the weights that are written."""
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
        """Fills an empty folder. Raises EngineError for damaged weights, OSError where the disk refuses."""
        for name, text in self.words.files.items():
            (folder / name).write_text(text, "utf-8")
        (folder / "config.json").write_text(json.dumps(self.config, indent=1), "utf-8")
        with self.path.open("rb") as source, (folder / "model.safetensors").open("wb") as to:
            self._weights(source, to, progress)
            to.flush()
            os.fsync(to.fileno())

    def _weights(self, source: IO[bytes], to: IO[bytes], progress: Progress | None) -> None:
        """The format of safetensors: the length of a table, the table, and the numbers."""
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
        """A tensor some rows at a time, fp32, in the order in which transformers has them."""
        kind = self.header.tensors[tensor.target][1]
        start, _ = self.header.places[tensor.target]
        shape = tensor.shape if len(tensor.shape) == 2 else (1, *tensor.shape)
        block, block_bytes = GGML_QUANT_SIZES[kind]
        row_bytes = shape[1] // block * block_bytes
        step = max(1, _NUMBERS // shape[1])
        if tensor.heads:  # whole heads, for their rows change places
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
    """The number format in which a tensor is kept."""
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
    if kind == "BF16":  # it was bf16: the upper half of each number is all of it
        return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return np.ascontiguousarray(values, np.float32).tobytes()
