"""The engine that runs everywhere torch does: NVIDIA, Apple, plain processors.

A decoder of our own samples and learns for the Qwen2, Qwen3 and Llama families, so neither transformers nor
peft is imported for them (that would triple the start-up time). Every other architecture runs on those two.
"""

from __future__ import annotations

from engines import waiting  # noqa: F401 - before torch is imported
from engines.torch_lora.engine import TorchEngine, TorchSwarm, open_engine, open_swarm

__all__ = ["TorchEngine", "TorchSwarm", "open_engine", "open_swarm"]
