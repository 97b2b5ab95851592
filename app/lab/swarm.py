"""The swarm that the lab needs of an engine: many adapters over one frozen base, sampled in one batch.

`engines.torch_lora.TorchSwarm` is one; tests use a small made-up one. Shapes: `_N` nodes, `_P` prompts, `_G`
completions of a group, `_S` sequences, `_T` tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from engines.contract import Batch, Completion, Messages, StepStats, TokenSequence


class LabSwarm(Protocol):
    """N nodes, each with its own adapter and optimiser, named by their number from 0."""

    def prompt_tokens(self, prompt: Messages) -> list[int]: ...

    def encode(self, prompt: Messages, completion: str, finished: bool) -> TokenSequence: ...

    def sample(
        self, prompts_NP: Sequence[Sequence[Messages]], n: int, max_tokens: int, seeds_N: Sequence[int]
    ) -> list[list[list[Completion]]]:
        """`n` completions for every prompt of every node, all rows in one batch. Nodes may have unequally
        many."""
        ...

    def logprobs(self, node: int, sequences_S: Sequence[TokenSequence]) -> list[list[float]]: ...

    def step(self, node: int, batch: Batch) -> StepStats: ...
