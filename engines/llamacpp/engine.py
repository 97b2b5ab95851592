"""The llama.cpp engine: torch learns, llama.cpp samples. Implements `engines.contract.Engine`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

import msgspec
import torch

from engines.choice import SAMPLER_BYTES, sampler_kind
from engines.contract import Completion, EngineError, EngineOptions, Heard, Kind, Messages
from engines.llamacpp.follower import AdapterContexts, open_contexts
from engines.llamacpp.model import MAX_SEQUENCES, computes_bf16, why_unavailable
from engines.llamacpp.sampler import LlamaDecoder, sample
from engines.models.folder import count_parameters, open_folder
from engines.models.gguf import gguf, tensors
from engines.torch_lora.engine import Base, TorchEngine
from engines.torch_lora.network.device import free_memory
from engines.torch_lora.sampler import quantiles

KEYS_BYTES = 640 << 20
"""Maximum bytes of the KV cache of all rows: more than about forty rows bring no speed, and long prompts would
need gigabytes."""


class LlamaEngine(TorchEngine):
    """Learns like the torch engine and samples with llama.cpp."""

    def __init__(self, base: Base, follower: AdapterContexts, kind: Kind, seed: int) -> None:
        super().__init__(base, seed)
        self._follower = follower
        self.info = msgspec.structs.replace(self.info, name="llamacpp", sampler=f"llama.cpp {kind}")

    def sample(
        self,
        prompts_P: Sequence[Messages],
        n: int,
        max_tokens: int,
        seed: int,
        *,
        plain: bool = False,
        temperature: float = 1.0,
        heard: Heard | None = None,
    ) -> list[list[Completion]]:
        text = self._base.text
        tokens_P = text.tokenize_prompts(prompts_P, n, max_tokens)
        if not tokens_P:
            return []
        tokens = max(map(len, tokens_P)) + max_tokens
        rows = self._rows(len(tokens_P) * n, tokens)
        context = self._follower.context(rows, tokens, None if plain else self._adapter)
        drawn = quantiles(seed, len(tokens_P), n, max_tokens).numpy()
        stops, vocabulary = sorted(text.stops), self._base.network.vocabulary
        found = sample(context, tokens_P, drawn, stops, vocabulary, temperature, text.token_callback(heard))
        return text.completions(found)

    def decoder(self, rows: int, tokens: int, *, plain: bool = False) -> LlamaDecoder:
        fitting = self._rows(rows, tokens)
        return LlamaDecoder(self._follower.context(fitting, tokens, None if plain else self._adapter))

    def _rows(self, wanted: int, tokens: int) -> int:
        """Returns how many rows run at a time: all of them, within the limits of llama.cpp, KEYS_BYTES and half
        of the free memory. Raises EngineError if not even one fits."""
        row_bytes = self._follower.row_bytes(tokens)
        most = min(wanted, MAX_SEQUENCES, max(1, KEYS_BYTES // row_bytes))
        fitting = free_memory(self._base.placement.device) // 2 // row_bytes
        if fitting < 1:
            raise EngineError(
                f"An answer of {tokens} tokens doesn't fit into the free memory: choose a smaller model "
                "or shorter answers."
            )
        if fitting < most:
            self._base.note(f"Memory is short: {fitting} answers are now sampled at a time.")
        return min(most, fitting)


def open_engine(
    model: str | Path, *, seed: int = 0, kind: Kind | None = None, **options: Unpack[EngineOptions]
) -> LlamaEngine:
    """Opens the engine, like `engines.torch_lora.open_engine`, on the processor only. `kind` is the sampler's
    number format, by default chosen by the model's size. Raises EngineError."""
    if reason := why_unavailable():
        raise EngineError(reason)
    device = options.get("device", "auto")
    if device not in ("auto", "cpu"):
        raise EngineError(
            f"llama.cpp samples on the processor here, not on {device}: choose cpu or another engine."
        )
    options["device"] = "cpu"
    folder = open_folder(Path(model))
    shape = gguf.architecture(folder)
    tensors.check(shape, folder.name)
    parameters = count_parameters(folder)
    chosen: Kind = kind or sampler_kind(parameters)
    base = Base(folder.path, sampler_bytes=int(parameters * SAMPLER_BYTES[chosen]), **options)
    if kind is None and chosen == "f16" and base.network.dtype is torch.bfloat16 and computes_bf16():
        chosen = "bf16"  # the learner's own weights, a third faster than f16 (LOG.md)
    return LlamaEngine(base, open_contexts(base, shape, chosen), chosen, seed)
