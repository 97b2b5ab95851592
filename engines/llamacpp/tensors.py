"""llama.cpp's own copy of the weights, found in memory, so that a merged adapter can be written over them.

llama.cpp has no function that sets a weight. It does show every node of its graph to an evaluation callback,
and a node knows the tensors it is computed from; their names and places are read with ggml's public functions.
All that belongs to one version is where a node keeps its sources, so another version is left alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.llamacpp.library import library

KNOWN = ("0.3.36",)
"""Versions of llama-cpp-python whose ggml_tensor is `_Node`."""

Found = dict[str, NDArray[np.uint8]]
"""Bytes of each weight by its name in GGUF."""

_SOURCES = 10


class _Node(ctypes.Structure):
    """The first fields of ggml_tensor (ggml.h of the versions in KNOWN)."""

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


def known() -> bool:
    import llama_cpp

    return llama_cpp.__version__ in KNOWN


def collector(wanted: Collection[str], found: Found) -> Any:
    """An evaluation callback that gathers the bytes of the wanted weights. Keep it as long as its context."""
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
    """Whether every weight was found, with as many bytes as it has in the file."""
    return {name: len(values) for name, values in found.items()} == dict(wanted)


def _ggml() -> Any:
    """ggml's functions of a tensor; the library is already loaded with llama.cpp."""
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
