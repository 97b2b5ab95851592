"""Keeps llama.cpp's copy of the model in step with the learner's adapter; updated when it is next used.

There are two ways. Merging overwrites the weights in llama.cpp's memory with `W + scale * B A`. With 135 M
parameters in 8 bits on one thread that took as long as 70 tokens, and each token was then 10 % faster than with
a separate adapter (4 % with 0.5 B; 30 % with two threads, which wait for each other at every small product). If
the version of llama.cpp is not in KNOWN_VERSIONS, the adapter stays separate."""

from __future__ import annotations

import ctypes
import functools
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

import gguf as format
import numpy as np
import torch
from numpy.typing import NDArray

from engines.contract import EngineError, Kind
from engines.llamacpp.model import CELL_MULTIPLE, Context, LlamaModel, LoadedAdapter, library
from engines.models.folder import Architecture
from engines.models.gguf import gguf
from engines.models.gguf import header as gguf_header
from engines.models.gguf import tensors as gguf_adapter
from engines.models.gguf.tensors import Names, interleaved
from engines.torch_lora.engine import Base
from engines.torch_lora.network.adapter import Adapter
from engines.torch_lora.network.native import NativeNetwork

# llama.cpp's own copy of the weights, found in memory, so that a merged adapter can be written over them.
#
# llama.cpp has no function that sets a weight. It does show every node of its graph to an evaluation callback,
# and a node knows the tensors it is computed from; their names and places are read with ggml's public
# functions. All that belongs to one version is where a node keeps its sources, so another version is left
# alone.

KNOWN_VERSIONS = ("0.3.36",)
"""Versions of llama-cpp-python whose ggml_tensor has the layout of `_Node`."""

Found = dict[str, NDArray[np.uint8]]
"""GGUF name to the bytes of that weight in llama.cpp's memory."""

_SOURCES = 10


class _Node(ctypes.Structure):
    """The first fields of ggml_tensor (ggml.h of the versions in KNOWN_VERSIONS)."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("ne", ctypes.c_int64 * 4),
        ("nb", ctypes.c_size_t * 4),
        ("op", ctypes.c_int),
        ("op_params", ctypes.c_int32 * 16),
        ("flags", ctypes.c_int32),
        ("src", ctypes.c_void_p * _SOURCES),
    )


def has_known_layout() -> bool:
    """Returns whether the installed version of llama.cpp has a known tensor layout."""
    import llama_cpp

    return llama_cpp.__version__ in KNOWN_VERSIONS


def weight_collector(wanted: Collection[str], found: Found) -> Any:
    """Returns an evaluation callback that puts views of the wanted weights' bytes into `found`. Must be kept as
    long as its context."""
    ggml = _ggml()

    @library().ggml_backend_sched_eval_callback  # type: ignore[untyped-decorator]
    def see(node: int, ask: bool, _: Any) -> bool:
        for source in _Node.from_address(node).src:
            if source and (name := (ggml.ggml_get_name(source) or b"").decode("utf-8", "replace")) in wanted:
                size, start = ggml.ggml_nbytes(source), ggml.ggml_get_data(source)
                found[name] = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(start))
        return not ask

    return see


def complete(found: Mapping[str, NDArray[np.uint8]], wanted: Mapping[str, int]) -> bool:
    """Returns whether every wanted weight was found, with the number of bytes it has in the file."""
    return {name: len(values) for name, values in found.items()} == dict(wanted)


def _ggml() -> Any:
    """Returns ggml's functions that read a tensor; the library is already loaded with llama.cpp."""
    import llama_cpp
    from llama_cpp import _ctypes_extensions as loading

    folder = Path(llama_cpp.__file__).parent / "lib"
    ggml: Any = loading.load_shared_library("ggml-base", folder)
    for name, result in (
        ("ggml_get_name", ctypes.c_char_p),
        ("ggml_nbytes", ctypes.c_size_t),
        ("ggml_get_data", ctypes.c_void_p),
    ):
        function = getattr(ggml, name)
        function.argtypes, function.restype = [ctypes.c_void_p], result
    return ggml


_WHOLE = {
    format.GGMLQuantizationType.F32: torch.float32,
    format.GGMLQuantizationType.F16: torch.float16,
    format.GGMLQuantizationType.BF16: torch.bfloat16,
}
"""Formats in which every number is stored by itself, not in blocks."""
QUANTISED_ROWS = 512
"""Rows of a matrix quantised at a time, few enough to stay in the processor's caches."""


class ContextProvider(Protocol):
    """Returns a llama.cpp context with room for `rows` rows of `tokens` tokens, under the given adapter or
    none."""

    def row_bytes(self, tokens: int) -> int: ...

    def context(self, rows: int, tokens: int, adapter: Adapter | None) -> Context: ...


class GrowingContext:
    """The context of one model, enlarged when more rows or tokens are requested. fp32 weights are used with
    exact attention, so that small models sample from the learner's own distribution."""

    def __init__(self, model: LlamaModel, shape: Architecture, exact: bool, threads: int) -> None:
        self.model = model
        self._shape = shape
        self._exact = exact
        self._threads = threads
        self._held: Context | None = None

    def for_model(self, model: LlamaModel) -> GrowingContext:
        """Returns a context for another model of the same shape."""
        return GrowingContext(model, self._shape, self._exact, self._threads)

    def row_bytes(self, tokens: int) -> int:
        """Returns the memory of one row: its KV cache, and the logits of its next token."""
        cells = -(-tokens // CELL_MULTIPLE) * CELL_MULTIPLE
        values = 2 * self._shape.layers * self._shape.kv_heads * self._shape.head_dim * cells
        return values * (4 if self._exact else 2) + 16 * self.model.vocabulary

    def context(self, rows: int, tokens: int) -> Context:
        held = self._held
        if held is None or held.sequences < rows or held.cells < tokens:
            self._held = None  # frees the old cache before the new one is made
            if held is not None:
                held.close()
            self._held = held = Context(self.model, rows, tokens, self._threads, self._exact)
        return held


class SideAdapter:
    """Applies the adapter as a separate GGUF LoRA, computed in addition to the weights."""

    def __init__(self, room: GrowingContext, shape: Architecture, half: bool) -> None:
        self._room = room
        self._shape = shape
        self._half = half
        self._loaded: LoadedAdapter | None = None
        self._follows: tuple[Adapter, int] | None = None

    def row_bytes(self, tokens: int) -> int:
        return self._room.row_bytes(tokens)

    def context(self, rows: int, tokens: int, adapter: Adapter | None) -> Context:
        context = self._room.context(rows, tokens)
        if adapter is not None and not _current(self._follows, adapter):
            self._swap(context, adapter)
        wanted = None if adapter is None else self._loaded
        if context.adapter is not wanted:
            context.set_adapter(wanted)
        return context

    def _swap(self, context: Context, adapter: Adapter) -> None:
        """Replaces the loaded adapter. The old one is removed first; if loading fails, the base has no
        adapter."""
        context.set_adapter(None)
        self._follows = None
        if self._loaded is not None:
            self._loaded.close()
            self._loaded = None
        state = {name: values.detach().numpy() for name, values in adapter.named(adapter.values)}
        alpha = adapter.scale * adapter.rank
        with tempfile.TemporaryDirectory(prefix="shoal-adapter-") as folder:
            file = Path(folder) / "adapter.gguf"
            gguf_adapter.write_state(state, alpha=alpha, architecture=self._shape, to=file, half=self._half)
            self._loaded = LoadedAdapter(self._room.model, file)
        self._follows = (adapter, adapter.version)


class MergedAdapter:
    """Applies the adapter by merging it into llama.cpp's weights. The plain base is a second model, mapped from
    its file and never written."""

    def __init__(
        self,
        room: GrowingContext,
        plain: Path,
        weights: dict[str, torch.Tensor],
        shape: Architecture,
        network: NativeNetwork,
    ) -> None:
        self._room = room
        self._plain_file = plain
        self._plain: GrowingContext | None = None
        self._weights = weights
        self._names = Names(shape)
        self._network = network
        self._follows: tuple[Adapter, int] | None = None

    def row_bytes(self, tokens: int) -> int:
        return self._room.row_bytes(tokens)

    def context(self, rows: int, tokens: int, adapter: Adapter | None) -> Context:
        if adapter is None:
            if self._plain is None:
                self._plain = self._room.for_model(LlamaModel(self._plain_file))
            return self._plain.context(rows, tokens)
        context = self._room.context(rows, tokens)
        if not _current(self._follows, adapter):
            self._follows = None
            for layer, weight in self._network.merged(adapter):
                name = f"{layer}.weight"
                ordered = interleaved(weight, self._names.heads(name))  # type: ignore[arg-type]
                store_weight(ordered, self._weights[self._names.target(name) or name])  # type: ignore[arg-type]
            context.clear()  # what was read, was read by the weights before
            self._follows = (adapter, adapter.version)
        return context


def store_weight(weight_oi: torch.Tensor, held_V: torch.Tensor) -> None:
    """Writes an fp32 matrix into one of llama.cpp's tensors, converted to the tensor's number format.

    q8_0 is blocks of 32: a scale in fp16, the largest magnitude / 127, and 32 signed bytes (ggml-quants.c).

    >>> held = torch.zeros(34, dtype=torch.uint8)
    >>> store_weight(torch.tensor([[0.0, -2.54] + [1.27] * 30]), held)
    >>> round(held[:2].view(torch.float16).item(), 3), held[2:5].view(torch.int8).tolist()
    (0.02, [0, -127, 64])
    """
    if held_V.dtype is torch.bfloat16:
        held_V.view(weight_oi.shape).copy_(dithered(weight_oi))
        return
    if held_V.dtype is not torch.uint8:  # also in 8-bit files, where rows are no multiple of 32
        held_V.view(weight_oi.shape).copy_(weight_oi)
        return
    blocks = held_V.view(weight_oi.shape[0], -1, 34)
    for first in range(0, weight_oi.shape[0], QUANTISED_ROWS):
        part = weight_oi[first : first + QUANTISED_ROWS]
        part = part.reshape(len(part), -1, 32)
        scale = part.abs().amax(2, keepdim=True).div_(127)
        whole = part.mul(torch.where(scale == 0, 0, 1 / scale)).round_()
        held = blocks[first : first + QUANTISED_ROWS]
        held[..., :2] = scale.half().view(torch.uint8)
        held[..., 2:] = whole.to(torch.int8).view(torch.uint8)


def dithered(weight: torch.Tensor) -> torch.Tensor:
    """Rounds fp32 to bf16 stochastically: up with a probability equal to the fraction lost. In the first rounds
    an adapter adds less than the last of bf16's eight bits, and rounding to nearest would lose all of it.
    Values that are exact in bf16 stay unchanged, and the same weights are always rounded the same way.

    >>> one = dithered(torch.full((1000,), 1 + 2**-9))
    >>> sorted(set(one.tolist())), 200 < (one > 1).sum() < 300
    ([1.0, 1.0078125], tensor(True))
    """
    bits = weight.view(torch.int32) + _dither(weight.numel()).view(weight.shape)
    return bits.bitwise_right_shift_(16).to(torch.int16).view(torch.bfloat16)


@functools.lru_cache(maxsize=8)  # a model has few sizes of matrices
def _dither(size: int) -> torch.Tensor:
    return torch.randint(2**16, (size,), dtype=torch.int32, generator=torch.Generator().manual_seed(size))


def open_provider(base: Base, shape: Architecture, kind: Kind) -> ContextProvider:
    """Opens the converted model, converting it first if needed, and returns the provider of its contexts. If
    llama.cpp refuses the file, it is converted once more. Raises EngineError if that does not help."""
    exact, threads = kind == "f32", base.placement.threads
    path = gguf.cached(base.folder.path, kind)
    writable = has_known_layout() and isinstance(base.network, NativeNetwork)
    try:
        model = LlamaModel(path, writable)
    except EngineError:
        path.unlink(missing_ok=True)
        path = gguf.cached(base.folder.path, kind)
        model = LlamaModel(path, writable)
        base.note("The converted model was damaged and has been made again.")
    room = GrowingContext(model, shape, exact, threads)
    if writable and isinstance(base.network, NativeNetwork):
        weights = _weights(model, path, threads)
        if weights is not None:
            return MergedAdapter(room, path, weights, shape, base.network)
    return SideAdapter(room, shape, half=not exact)


def _weights(model: LlamaModel, path: Path, threads: int) -> dict[str, torch.Tensor] | None:
    """Returns llama.cpp's memory of every matrix that an adapter can change, None if some were not found."""
    header = gguf_header.read(path).tensors
    wanted = {
        name: size // block * block_bytes
        for name, (dimensions, kind) in header.items()
        if name.startswith("blk.") and len(dimensions) == 2
        for size in (dimensions[0] * dimensions[1],)
        for block, block_bytes in (format.GGML_QUANT_SIZES[kind],)
    }
    found: Found = {}
    watch = weight_collector(wanted, found)
    context = Context(model, 1, 1, threads, exact=False, watch=watch)
    context.read([0], [0])
    context.close()
    if not complete(found, wanted):
        return None
    return {
        name: torch.from_numpy(values).view(_WHOLE.get(header[name][1], torch.uint8))
        for name, values in found.items()
    }


def _current(follows: tuple[Adapter, int] | None, adapter: Adapter) -> bool:
    return follows is not None and follows[0] is adapter and follows[1] == adapter.version
