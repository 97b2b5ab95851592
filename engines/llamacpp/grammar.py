"""llama.cpp's grammars (GBNF): which tokens may come next in a text that must follow a grammar.

Only the vocabulary is loaded, so a grammar can be used with the logits of any engine."""

from __future__ import annotations

import ctypes
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines import opening
from engines.contract import EngineError
from engines.llamacpp.model import library
from engines.models.folder import open_folder
from engines.models.gguf import gguf

_TOKEN = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
"""llama_token_data."""


class Grammars:
    """Compiles grammars over the vocabulary of the model in `folder`. Raises EngineError if llama.cpp is
    missing or tokenizes differently from this model."""

    def __init__(self, folder: Path) -> None:
        if reason := opening.why_unavailable("llamacpp"):
            raise EngineError(f"Answers of a given form need llama.cpp: {reason}")
        llama = library()
        with tempfile.TemporaryDirectory(prefix="shoal-words-") as place:
            file = Path(place) / "words.gguf"
            self._tokens = gguf.write_vocabulary(open_folder(folder), file)
            params = llama.llama_model_default_params()
            params.vocab_only = True
            pointer = llama.llama_model_load_from_file(str(file).encode(), params)
        if not pointer:
            raise EngineError("llama.cpp can't read this model's vocabulary: ask without a form.")
        self._close = weakref.finalize(self, llama.llama_model_free, pointer)
        self._vocabulary = llama.llama_model_get_vocab(pointer)

    def begin(self, grammar: str) -> Grammar:
        """Compiles GBNF text and returns the grammar in its initial state. Raises EngineError if llama.cpp
        refuses it."""
        pointer = library().llama_sampler_init_grammar(self._vocabulary, grammar.encode(), b"root")
        if not pointer:
            raise EngineError("The form of the answer isn't one that llama.cpp takes: make it simpler.")
        return Grammar(pointer, self, self._tokens)


class Grammar:
    """The parsing state of one text in its grammar. Keeps the vocabulary loaded."""

    def __init__(self, pointer: Any, grammars: Grammars, tokens: int) -> None:
        self._pointer, self._grammars, self._tokens = pointer, grammars, tokens
        self._close = weakref.finalize(self, library().llama_sampler_free, pointer)

    def allowed(self, logits_V: NDArray[Any], ids: NDArray[Any] | None = None) -> NDArray[Any]:
        """Returns the logits with -inf for each token that the grammar forbids. The logits are those of the
        tokens `ids`, or of the whole vocabulary."""
        llama = library()
        tokens = np.zeros(len(logits_V), _TOKEN)
        tokens["id"] = np.arange(len(logits_V)) if ids is None else ids
        tokens["logit"] = np.where(tokens["id"] < self._tokens, logits_V, -np.inf)
        data = ctypes.cast(tokens.ctypes.data, llama.llama_token_data_p)
        array = llama.llama_token_data_array(data=data, size=len(tokens), selected=-1, sorted=False)
        llama.llama_sampler_apply(self._pointer, ctypes.byref(array))
        found: NDArray[Any] = tokens["logit"]
        return found

    def allows(self, token: int) -> bool:
        return bool(np.isfinite(self.allowed(np.zeros(1, np.float32), np.array([token]))[0]))

    def accept(self, token: int) -> None:
        """Advances by a token, which must be allowed: any other ends the process."""
        library().llama_sampler_accept(self._pointer, token)
