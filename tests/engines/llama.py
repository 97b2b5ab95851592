"""llama.cpp as a judge: logits and token ids from a GGUF file, by its own low-level interface, in fp32."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")

_said: list[str] = []


@llama_cpp.llama_log_callback
def _keep(level: int, text: bytes, _data: Any) -> None:
    if level == 4:
        _said.append(text.decode(errors="replace"))


def _listen() -> None:
    """Collects llama.cpp's errors from here on: the engine sets a callback of its own when it loads."""
    llama_cpp.llama_log_set(_keep, ctypes.c_void_p(0))
    _said.clear()


@contextmanager
def opened(file: Path, vocabulary_only: bool = False) -> Iterator[Any]:
    """The model pointer. Raises ValueError with llama.cpp's own words where it refuses the file."""
    settings = llama_cpp.llama_model_default_params()
    settings.vocab_only = vocabulary_only
    _listen()
    model = llama_cpp.llama_model_load_from_file(str(file).encode(), settings)
    if not model:
        raise ValueError("".join(_said))
    try:
        yield model
    finally:
        llama_cpp.llama_model_free(model)


def logits(file: Path, tokens: Sequence[int], lora: Path | None = None, exact: bool = True) -> Any:
    """(tokens, vocabulary) fp32, with an adapter on top where one is given; `exact` keeps keys and values in
    fp32."""
    with opened(file) as model:
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx = settings.n_batch = settings.n_ubatch = max(256, len(tokens))
        settings.n_threads = settings.n_threads_batch = 1
        if exact:
            settings.type_k = settings.type_v = 0
            settings.flash_attn_type = 0
        context = llama_cpp.llama_init_from_model(model, settings)
        assert context
        if lora is not None:
            _listen()
            adapter = llama_cpp.llama_adapter_lora_init(model, str(lora).encode())
            if not adapter:
                llama_cpp.llama_free(context)
                raise ValueError("".join(_said))
            adapters = (llama_cpp.llama_adapter_lora_p_ctypes * 1)(adapter)
            assert llama_cpp.llama_set_adapters_lora(context, adapters, 1, (ctypes.c_float * 1)(1.0)) == 0
        batch = llama_cpp.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for index, token in enumerate(tokens):
            batch.token[index], batch.pos[index] = token, index
            batch.n_seq_id[index], batch.seq_id[index][0], batch.logits[index] = 1, 0, 1
        try:
            assert llama_cpp.llama_decode(context, batch) == 0
            size = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
            pointer = llama_cpp.llama_get_logits(context)
            return np.ctypeslib.as_array(pointer, shape=(len(tokens), size)).copy()
        finally:
            llama_cpp.llama_batch_free(batch)
            llama_cpp.llama_free(context)


def tokenized(model: Any, text: str, special: bool = True, add: bool = False) -> list[int]:
    """Token ids by llama.cpp; `special` reads control tokens in the text, `add` adds the model's own."""
    vocabulary = llama_cpp.llama_model_get_vocab(model)
    raw = text.encode()
    room = (llama_cpp.llama_token * (len(raw) + 16))()
    count = llama_cpp.llama_tokenize(vocabulary, raw, len(raw), room, len(room), add, special)
    assert count >= 0
    return list(room[:count])
