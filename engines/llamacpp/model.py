"""A GGUF model in llama.cpp, an adapter on it, and a context that reads batches of tokens.

Each row is a sequence id with its own KV stream (`kv_unified` off): in a shared stream, rows of different
questions would attend over each other's cells, which was measured twice as slow.

The library's functions report failure by a pointer that is NULL yet not None, so every pointer is tested as a
bool. What it says while it fails is kept for the log."""

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
from engines.facts import CPU_FEATURES, features
from engines.remedy import command, installed, packed, repair_phrase

PROCESSOR_FILE = "shoal-llamacpp.processor"
"""File in the Python environment with the processor features for which app.install.launcher.optional built
llama.cpp."""

_ERROR = 4
"""Log level of errors; 5 continues the previous line, 1 to 3 are for developers."""


def why_unavailable() -> str:
    """Returns one sentence that says why llama.cpp cannot run here and what to do; "" if it can. The build in
    an engine pack needs AVX2; a checkout's build needs the processor it was built on, and the checkout may have
    been moved to another computer."""
    built_for_avx2 = packed() and platform.machine().lower() in ("x86_64", "amd64")
    if built_for_avx2 and "avx2" not in features():  # its first such instruction would end this process
        return "llama.cpp needs a processor with AVX2 (2013 and later), and this one has none: PyTorch samples."
    if lacking := sorted(_built_for() - set(features())):
        return (
            f"llama.cpp was built for another processor, with {' and '.join(lacking)}: build it for this one "
            f"with {command('setup --engine llamacpp')}. PyTorch samples."
        )
    try:
        library()
    except ImportError:
        return f"llama.cpp isn't installed: {repair_phrase('llamacpp', ', which needs a C++ compiler')}."
    except (OSError, RuntimeError, FileNotFoundError, AttributeError) as error:
        said = " ".join(str(error).split())[:200]
        how = command("pack repair" if installed() else "setup --engine llamacpp")
        return f"llama.cpp doesn't load here ({said}): install it again with {how}."
    return ""


def computes_bf16() -> bool:
    """Returns whether this llama.cpp was built with native bf16 products; without them bf16 is slow."""
    return b"AVX512_BF16 = 1" in library().llama_print_system_info()


def _built_for() -> set[str]:
    """Returns the recorded processor features that llama.cpp was built for; empty if there is no record."""
    try:
        return set(CPU_FEATURES) & set((Path(sys.prefix) / PROCESSOR_FILE).read_text(encoding="ascii").split())
    except (OSError, UnicodeDecodeError):
        return set()


@functools.cache
def library() -> Any:
    """Loads llama.cpp and returns the module with its functions. Raises ImportError or OSError if it cannot be
    loaded."""
    loaded: Any = importlib.import_module("llama_cpp.llama_cpp")
    loaded.llama_log_set(_log(loaded), None)
    loaded.llama_backend_init()
    return loaded


@functools.cache
def _log(loaded: Any) -> Any:
    """Returns a log callback that writes errors to standard error and drops everything else. Cached, because
    llama.cpp keeps only a bare pointer to it."""

    @loaded.llama_log_callback  # type: ignore[untyped-decorator]
    def hear(level: int, text: bytes, _: Any) -> None:
        if level == _ERROR:
            sys.stderr.write(text.decode("utf-8", "replace"))

    return hear


MAX_SEQUENCES = 255
"""llama.cpp's own limit (LLAMA_MAX_SEQ), less one sequence that holds the prompt read last."""

CELL_MULTIPLE = 256
"""llama.cpp rounds the number of cells of a sequence up to a multiple of this."""

PROMPT_TOKENS = 512
"""Maximum prompt tokens read in one call."""

MIN_REUSED_PREFIX = 64
"""Minimum length of a common prefix with the last prompt for which its KV cache is reused. A system message
alone is shorter, so ordinary questions are read completely and give the same bits whatever was read before."""

_F32 = 0
"""ggml's number type of the KV cache."""


class LlamaModel:
    """The frozen weights in llama.cpp. Freed automatically when unused. Raises EngineError if llama.cpp refuses
    the file."""

    def __init__(self, path: Path) -> None:
        llama = library()
        params = llama.llama_model_default_params()
        params.n_gpu_layers = 0
        params.use_extra_bufts = False  # repacked weights ended the process with 8 bits and an adapter
        pointer = llama.llama_model_load_from_file(str(path).encode(), params)
        if not pointer:
            raise EngineError(f"llama.cpp can't open {path.name}: delete it, and it is made again.")
        self.pointer = pointer
        self.close = weakref.finalize(self, llama.llama_model_free, pointer)
        self.vocabulary = int(llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(pointer)))


class LoadedAdapter:
    """A GGUF LoRA loaded onto a model. The file is not needed afterwards. Raises AdapterError if llama.cpp
    refuses it."""

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


def common_prefix_length(one_T: Sequence[int], other_T: Sequence[int]) -> int:
    """Returns the number of tokens that two prompts share from the start.

    >>> common_prefix_length([1, 2, 3], [1, 2, 4, 5]), common_prefix_length([], [1])
    (2, 0)
    """
    pairs = enumerate(zip(one_T, other_T, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(one_T), len(other_T)))


class Context:
    """A llama.cpp context: KV streams for `sequences` rows of at most `tokens` tokens, and the calls that fill
    them. `exact` keeps the KV cache in fp32 and attention unfused, for small models and for tests.
    Raises EngineError if memory is short."""

    def __init__(self, model: LlamaModel, sequences: int, tokens: int, threads: int, exact: bool) -> None:
        llama = library()
        self.sequences = sequences
        self.cells = -(-tokens // CELL_MULTIPLE) * CELL_MULTIPLE
        params = llama.llama_context_default_params()
        params.n_ctx = self.cells * (sequences + 1)
        params.n_seq_max = sequences + 1
        params.n_batch = params.n_ubatch = self._batch = max(PROMPT_TOKENS, sequences)
        params.n_outputs_max = sequences + 1  # otherwise logits for every prompt token are allocated
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = False
        params.no_perf = True
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
        """Tokens of the prompt read last; its KV cache is in the sequence after all others."""
        self._vocabulary = model.vocabulary
        self._memory = llama.llama_get_memory(pointer)
        self.close = weakref.finalize(self, llama.llama_free, pointer)
        self._allocate(llama)

    def _allocate(self, llama: Any) -> None:
        """Creates a llama_batch over numpy arrays: filling it is one assignment instead of a loop of ctypes
        calls."""
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

    def set_adapter(self, adapter: LoadedAdapter | None) -> None:
        """Uses this adapter, or none, from now on, and clears the KV cache. Raises AdapterError."""
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
        """Forgets everything that was read. Does not zero the memory: for half a gigabyte that would take
        longer than an answer."""
        library().llama_memory_clear(self._memory, False)
        self._held = []

    def forget_rows(self) -> None:
        """Forgets the rows, but not the prompt that was read last."""
        for sequence in range(self.sequences):
            library().llama_memory_seq_rm(self._memory, sequence, -1, -1)

    def read(self, prompt_T: Sequence[int], sequences: Sequence[int]) -> NDArray[np.float32]:
        """Reads a prompt and copies it to these sequences. Returns the logits after it, (1, V). A prefix shared
        with the last prompt, for example the same examples, is not read again."""
        llama, holder = library(), self.sequences
        begun = common_prefix_length(self._held, prompt_T[:-1])
        begun = begun if begun >= MIN_REUSED_PREFIX else 0
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
        logits = self._logits(1).copy()  # the next call overwrites it
        for sequence in sequences:
            llama.llama_memory_seq_rm(self._memory, int(sequence), -1, -1)
            llama.llama_memory_seq_cp(self._memory, holder, int(sequence), -1, -1)
        self._held = list(prompt_T)
        return logits

    def move(self, source: int, target: int) -> None:
        """Moves the KV cache of one sequence to another."""
        llama = library()
        llama.llama_memory_seq_rm(self._memory, target, -1, -1)
        llama.llama_memory_seq_cp(self._memory, source, target, -1, -1)
        llama.llama_memory_seq_rm(self._memory, source, -1, -1)

    def advance(self, tokens_R: NDArray[np.int64], positions_R: NDArray[np.int64]) -> NDArray[np.float32]:
        """Appends one token to each of the first R sequences. Returns the logits of the next tokens, (R, V),
        valid until the next call."""
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
