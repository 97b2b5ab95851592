"""llama.cpp samples, torch learns: for processors, where llama.cpp's kernels are faster.

The base model is converted to GGUF once and loaded once; after each step llama.cpp's copy gets the new adapter.
The two programs differ by rounding, so `EngineInfo.sampler` is set, and rows should carry the sampler's
log-probabilities."""

from __future__ import annotations

from engines.facts import set_engine_variables

set_engine_variables()  # before torch is imported

from engines.llamacpp.engine import LlamaEngine, open_engine  # noqa: E402
from engines.llamacpp.model import why_unavailable  # noqa: E402

__all__ = ["LlamaEngine", "open_engine", "why_unavailable"]
