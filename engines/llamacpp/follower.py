"""Keeps llama.cpp in step with the learner's adapter, through llama.cpp's own LoRA: after a step the adapter is
written as a small GGUF file and loaded when the sampler is next used."""

from __future__ import annotations

import tempfile
from pathlib import Path

from engines.contract import EngineError, Kind
from engines.llamacpp.model import CELL_MULTIPLE, Context, LlamaModel, LoadedAdapter
from engines.models.folder import Architecture
from engines.models.gguf import gguf
from engines.models.gguf import tensors as gguf_adapter
from engines.torch_lora.engine import Base
from engines.torch_lora.network.adapter import Adapter


class GrowingContext:
    """The context of one model, enlarged when more rows or tokens are requested. fp32 weights are used with
    exact attention, so that small models sample from the learner's own distribution."""

    def __init__(self, model: LlamaModel, shape: Architecture, exact: bool, threads: int) -> None:
        self.model = model
        self._shape = shape
        self._exact = exact
        self._threads = threads
        self._held: Context | None = None

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


class AdapterContexts:
    """Gives contexts under the learner's adapter as it is now, or under none."""

    def __init__(self, room: GrowingContext, shape: Architecture, half: bool) -> None:
        self._room = room
        self._shape = shape
        self._half = half
        self._loaded: LoadedAdapter | None = None
        self._follows: tuple[Adapter, int] | None = None

    def row_bytes(self, tokens: int) -> int:
        return self._room.row_bytes(tokens)

    def context(self, rows: int, tokens: int, adapter: Adapter | None) -> Context:
        """Returns a context with room for `rows` rows of `tokens` tokens. Raises AdapterError."""
        context = self._room.context(rows, tokens)
        if adapter is not None and self._follows != (adapter, adapter.version):
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


def open_contexts(base: Base, shape: Architecture, kind: Kind) -> AdapterContexts:
    """Opens the converted model, converting it first if needed. If llama.cpp refuses the file, it is converted
    once more. Raises EngineError if that does not help."""
    exact = kind == "f32"
    path = gguf.cached(base.folder.path, kind)
    try:
        model = LlamaModel(path)
    except EngineError:
        path.unlink(missing_ok=True)
        path = gguf.cached(base.folder.path, kind)
        model = LlamaModel(path)
        base.note("The converted model was damaged and has been made again.")
    return AdapterContexts(GrowingContext(model, shape, exact, base.placement.threads), shape, half=not exact)
