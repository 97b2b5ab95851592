"""A GGUF model in llama.cpp, an adapter on it, and a context that reads batches of tokens.

One sequence id is one row with a key-value stream of its own (`kv_unified` off): with many questions at once,
rows of a shared one would attend over each other's cells, which was measured twice as slow."""

from __future__ import annotations

import ctypes
import functools
import importlib
import platform
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.contract import AdapterError, EngineError, progress
from engines.facts import FEATURES, ISA, features, isa
from engines.remedy import command, installed, packed, repair

# llama.cpp itself, through llama-cpp-python's low-level functions, loaded when it is first wanted.
#
# Its functions report failure by a pointer that is NULL yet not None, so every pointer is tested as a bool.
# What it says while it fails is kept for the log.

PROCESSOR = "shoal-llamacpp.processor"
"""Environment variable: features of the processor that app.install.launcher.optional found when it built
llama.cpp."""

_ERROR = 4
"""Log level of failures; 5 continues any line, 1 to 3 are for developers."""


def available() -> str:
    """Empty if llama.cpp can run, else one sentence: why not, and what to do. An engine pack's was built for
    AVX2; in a checkout it was built for the very processor, and the checkout may have been moved to another
    computer."""
    built_for_avx2 = packed() and platform.machine().lower() in ("x86_64", "amd64")
    if built_for_avx2 and "avx2" not in features():  # its first such instruction would end this process
        return "llama.cpp needs a processor with AVX2 (2013 and later), and this one has none: PyTorch samples."
    if lacking := sorted(_built_for() - set(features(masked=False))):
        return (
            f"llama.cpp was built for another processor, with {' and '.join(lacking)}: build it for this one "
            f"with {command('setup --engine llamacpp')}. PyTorch samples."
        )
    try:
        library()
    except ImportError:
        how = repair("llamacpp", ", which needs a C++ compiler")
        return f"llama.cpp isn't installed: {how}, or choose the torch engine."
    except (OSError, RuntimeError, FileNotFoundError, AttributeError) as error:
        said = " ".join(str(error).split())[:200]
        how = command("pack repair" if installed() else "setup --engine llamacpp")
        return f"llama.cpp doesn't load here ({said}): install it again with {how}."
    if isa() and b"AVX512 = 1" in library().llama_print_system_info():
        return (
            f"llama.cpp was built with AVX-512 here, which {ISA}={isa()} can't switch off: build one for AVX2 "
            f"beside it with {command('setup --avx2')}."
        )
    return ""


def computes_bf16() -> bool:
    """Whether this llama.cpp was built with the processor's own bf16 products; without them it is slow."""
    return b"AVX512_BF16 = 1" in library().llama_print_system_info()


def _built_for() -> set[str]:
    """Abilities that a build of this checkout may use."""
    try:
        return set(FEATURES) & set((Path(sys.prefix) / PROCESSOR).read_text(encoding="ascii").split())
    except (OSError, UnicodeDecodeError):
        return set()


@functools.cache
def library() -> Any:
    """The module with llama.cpp's functions. Raises ImportError or OSError where it cannot be loaded."""
    loaded: Any = importlib.import_module("llama_cpp.llama_cpp")
    loaded.llama_log_set(_log(loaded), None)
    loaded.llama_backend_init()
    return loaded


@functools.cache
def _log(loaded: Any) -> Any:
    """Writes failures to standard error and drops everything else. Cached, because llama.cpp keeps only a bare
    pointer."""

    @loaded.llama_log_callback  # type: ignore[untyped-decorator]
    def hear(level: int, text: bytes, _: Any) -> None:
        if level == _ERROR:
            sys.stderr.write(text.decode("utf-8", "replace"))

    return hear


MOST_SEQUENCES = 255
"""llama.cpp's own limit (LLAMA_MAX_SEQ), less one that holds the prompt read last."""

CELL_MULTIPLE = 256
"""llama.cpp rounds the number of cells of a sequence up to a multiple of this."""

PROMPT_TOKENS = 512
"""Prompt tokens read in one call."""

WORTH_HOLDING = 64
"""Common tokens from which a prompt is read only from where it differs from the last one. A system line alone
is shorter, so ordinary questions are read whole, and give the same bits whatever came before."""

_F32, _F16 = 0, 1
"""ggml's number types, of keys and values here."""


class LlamaModel:
    """The frozen weights. Closed automatically when nothing uses it any more. `writable` reads them into
    memory, instead of mapping the file read-only."""

    def __init__(self, path: Path, writable: bool = False) -> None:
        llama = library()
        params = llama.llama_model_default_params()
        params.n_gpu_layers = 0
        if writable:
            params.load_mode = llama.LLAMA_LOAD_MODE_NONE
            params.use_extra_bufts = False
        pointer = llama.llama_model_load_from_file(str(path).encode(), params)
        if not pointer:
            raise EngineError(f"llama.cpp can't open {path.name}: delete it, and it is made again.")
        self.pointer = pointer
        self.close = weakref.finalize(self, llama.llama_model_free, pointer)
        self.vocabulary = int(llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(pointer)))


class LoadedAdapter:
    """A GGUF LoRA of a model. The file is not needed once it is loaded."""

    def __init__(self, model: LlamaModel, path: Path) -> None:
        llama = library()
        pointer = llama.llama_adapter_lora_init(model.pointer, str(path).encode())
        if not pointer:
            raise AdapterError(
                f"llama.cpp can't read the adapter {path.name}: start with the model it was made for, or go "
                "back to an earlier checkpoint."
            )
        self.pointer = pointer
        self._model = model  # must outlive the adapter, which the model frees with itself
        self.close = weakref.finalize(self, llama.llama_adapter_lora_free, pointer)
        self.close.atexit = False


def alike(one_T: Sequence[int], other_T: Sequence[int]) -> int:
    """Number of tokens that two prompts share from their start.

    >>> alike([1, 2, 3], [1, 2, 4, 5]), alike([], [1])
    (2, 0)
    """
    pairs = enumerate(zip(one_T, other_T, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(one_T), len(other_T)))


class Context:
    """Key-value streams of `sequences` rows of at most `tokens` tokens, and the calls that fill them.

    `exact` keeps keys and values in fp32 and attention unfused, for small models and for tests; `watch` is an
    evaluation callback."""

    def __init__(
        self, model: LlamaModel, sequences: int, tokens: int, threads: int, exact: bool, watch: Any = None
    ) -> None:
        llama = library()
        self.sequences = sequences
        self.cells = -(-tokens // CELL_MULTIPLE) * CELL_MULTIPLE
        params = llama.llama_context_default_params()
        params.n_ctx = self.cells * (sequences + 1)
        params.n_seq_max = sequences + 1
        params.n_batch = params.n_ubatch = self._batch = max(PROMPT_TOKENS, sequences)
        params.n_outputs_max = sequences + 1  # else a vocabulary of logits is set aside for every prompt token
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = False
        params.no_perf = True
        if watch is not None:
            params.cb_eval = watch
        if exact:
            params.type_k = params.type_v = _F32
            params.flash_attn_type = 0
        pointer = llama.llama_init_from_model(model.pointer, params)
        if not pointer:
            raise EngineError(
                f"llama.cpp has no room for {sequences} answers of {tokens} tokens: close other programs, or "
                "choose a smaller model or shorter answers."
            )
        self._pointer = pointer
        self._model = model
        self.adapter: LoadedAdapter | None = None
        self._held: list[int] = []
        """Tokens of the prompt read last; their keys and values are in the sequence behind all others."""
        self._vocabulary = model.vocabulary
        self._memory = llama.llama_get_memory(pointer)
        self.close = weakref.finalize(self, llama.llama_free, pointer)
        self._allocate(llama)

    def _allocate(self, llama: Any) -> None:
        """A llama_batch over numpy's memory: filling it is one assignment instead of a loop of ctypes calls."""
        size = self._batch
        self._tokens = np.zeros(size, np.int32)
        self._positions = np.zeros(size, np.int32)
        self._counts = np.ones(size, np.int32)
        self._ids = np.zeros(size, np.int32)
        self._outputs = np.zeros(size, np.int8)
        self._places = self._ids.ctypes.data + np.arange(size, dtype=np.uintp) * 4
        kinds = {name: kind for name, kind, *_ in llama.llama_batch._fields_}
        self._batch_struct = llama.llama_batch(
            n_tokens=0,
            token=ctypes.cast(self._tokens.ctypes.data, kinds["token"]),
            pos=ctypes.cast(self._positions.ctypes.data, kinds["pos"]),
            n_seq_id=ctypes.cast(self._counts.ctypes.data, kinds["n_seq_id"]),
            seq_id=ctypes.cast(self._places.ctypes.data, kinds["seq_id"]),
            logits=ctypes.cast(self._outputs.ctypes.data, kinds["logits"]),
        )

    def adapt(self, adapter: LoadedAdapter | None) -> None:
        """Uses this adapter, or none, from now on. Prompts read under another one are forgotten."""
        llama = library()
        self.clear()
        if adapter is None:
            failed = llama.llama_set_adapters_lora(self._pointer, None, 0, None)
        else:
            pointers = (llama.llama_adapter_lora_p_ctypes * 1)(adapter.pointer)
            failed = llama.llama_set_adapters_lora(self._pointer, pointers, 1, (ctypes.c_float * 1)(1.0))
        if failed:
            raise AdapterError("llama.cpp refuses the adapter: go back to an earlier checkpoint.")
        self.adapter = adapter  # must not be freed while it is in use

    def clear(self) -> None:
        """Forgets all that was read. The memory keeps its bytes: zeros over half a gigabyte of them take longer
        than an answer."""
        library().llama_memory_clear(self._memory, False)
        self._held = []

    def leave_prompt(self) -> None:
        """Forgets the rows, but not the prompt that was read last."""
        for sequence in range(self.sequences):
            library().llama_memory_seq_rm(self._memory, sequence, -1, -1)

    def read(self, prompt_T: Sequence[int], sequences: Sequence[int]) -> NDArray[np.float32]:
        """Reads a prompt and copies it to these sequences. Returns the logits after it, (1, V). A common
        beginning with the prompt before, for example the same examples, is not read again."""
        llama, holder = library(), self.sequences
        begun = alike(self._held, prompt_T[:-1])
        begun = begun if begun >= WORTH_HOLDING else 0
        self._held = []
        llama.llama_memory_seq_rm(self._memory, holder, begun, -1)
        for first in range(begun, len(prompt_T), PROMPT_TOKENS):
            part = prompt_T[first : first + PROMPT_TOKENS]
            size = len(part)
            self._tokens[:size] = part
            self._positions[:size] = np.arange(first, first + size)
            self._ids[:size] = holder
            self._outputs[:size] = 0
            self._outputs[size - 1] = first + size == len(prompt_T)
            self._decode(size)
        logits = self._logits(1).copy()  # the next call writes over it
        for sequence in sequences:
            llama.llama_memory_seq_rm(self._memory, int(sequence), -1, -1)
            llama.llama_memory_seq_cp(self._memory, holder, int(sequence), -1, -1)
        self._held = list(prompt_T)
        return logits

    def move(self, source: int, target: int) -> None:
        """Moves what one sequence has read to another one."""
        llama = library()
        llama.llama_memory_seq_rm(self._memory, target, -1, -1)
        llama.llama_memory_seq_cp(self._memory, source, target, -1, -1)
        llama.llama_memory_seq_rm(self._memory, source, -1, -1)

    def advance(self, tokens_R: NDArray[np.int64], positions_R: NDArray[np.int64]) -> NDArray[np.float32]:
        """Appends one token to each of the first R sequences. Returns the next logits, (R, V), valid until the
        next call."""
        size = len(tokens_R)
        self._tokens[:size] = tokens_R
        self._positions[:size] = positions_R
        self._ids[:size] = np.arange(size)
        self._outputs[:size] = 1
        self._decode(size)
        return self._logits(size)

    def _decode(self, size: int) -> None:
        llama = library()
        self._batch_struct.n_tokens = size
        code = llama.llama_decode(self._pointer, self._batch_struct)
        if code == 1:
            raise EngineError("llama.cpp ran out of room for its key-value cache: choose shorter answers.")
        if code:
            raise EngineError(
                f"llama.cpp couldn't compute a batch (code {code}): close other programs, or choose the "
                "torch engine."
            )
        progress.add(size)

    def _logits(self, rows: int) -> NDArray[np.float32]:
        start = library().llama_get_logits(self._pointer)
        return np.ctypeslib.as_array(start, shape=(rows * self._vocabulary,)).reshape(rows, self._vocabulary)
