"""The interface that sampler and learner need of a model, run by our own decoder or by transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from engines.torch_lora.network.adapter import Adapter, Projection
from engines.torch_lora.network.layout import Tokens
from engines.torch_lora.network.logprobs import States


class Rollout(Protocol):
    """A batch of completions in progress: (N, R) rows, N adapters with R rows each, over one key-value
    cache."""

    def prefill(self, prompts_NP: Sequence[Sequence[Tokens]], n: int, max_tokens: int) -> torch.Tensor:
        """Reads each prompt once, replicates its cache to `n` rows. Logits of the first token, (N, R, V) fp32.

        R is `n` times the longest list of prompts; missing prompts become rows whose tokens mean nothing."""
        ...

    def advance(self, tokens_NR: torch.Tensor) -> torch.Tensor:
        """Appends one token to every row. Logits of the next, (N, R, V) fp32."""
        ...

    def keep(self, rows_NR: torch.Tensor) -> None:
        """Keeps only these rows of each adapter, in this order."""
        ...


class Network(Protocol):
    """A frozen base model that runs under any of several adapters."""

    vocabulary: int
    context: int
    projections: Sequence[Projection]
    device: torch.device
    dtype: torch.dtype
    weight_bytes: int

    def shares(self, checkpointing: bool) -> bool:
        """Whether `states` computes a prompt once for all completions behind it."""
        ...

    def states(
        self, adapter: Adapter, sequences_S: Sequence[tuple[Tokens, Tokens]], checkpointing: bool
    ) -> States:
        """The states that predict every completion token, sequence after sequence, differentiable by the
        adapter."""
        ...

    def rollout(self, adapters_N: Sequence[Adapter]) -> Rollout:
        """A fresh batch under the adapters as they are now."""
        ...

    def plain_rollout(self) -> Rollout:
        """A fresh batch of the base model alone, as one node."""
        ...

    def row_bytes(self, tokens: int) -> int:
        """Memory of one sampled row of that many tokens."""
        ...

    def token_bytes(self, checkpointing: bool) -> int:
        """Memory that the learner keeps for each token until its backward pass, roughly."""
        ...

    def nodes_per_pass(self, free_bytes: int) -> int:
        """How many adapters can sample together, by the memory their merged weights take; at least 1."""
        ...
