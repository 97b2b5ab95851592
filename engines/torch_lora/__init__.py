"""The engine that runs everywhere torch does: NVIDIA, Apple, plain processors.

Our own decoder samples and trains the Qwen2, Qwen3 and Llama families, so neither transformers nor peft is
imported for them (that would triple the start-up time). All other architectures use those two."""

from __future__ import annotations

from engines.facts import set_engine_variables

set_engine_variables()  # before torch is imported

from engines.torch_lora.engine import TorchEngine, TorchSwarm, open_engine, open_swarm  # noqa: E402

__all__ = ["TorchEngine", "TorchSwarm", "open_engine", "open_swarm"]
