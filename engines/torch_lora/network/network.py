"""The interface of a model for sampler and learner, implemented by our own decoder and by transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from engines.torch_lora.network.adapter import Adapter, Projection
from engines.torch_lora.network.layout import Tokens
from engines.torch_lora.network.logprobs import States


class Rollout(Protocol):
    """A batch of completions in progress: (N, R) rows, N adapters with R rows each, over one KV cache."""

    def prefill(self, prompts_NP: Sequence[Sequence[Tokens]], n: int, max_tokens: int) -> torch.Tensor:
        """Reads each prompt once and replicates its cache to `n` rows. Returns the logits of the first tokens,
        (N, R, V) fp32. R is `n` times the longest list of prompts; missing prompts become rows whose tokens are
        meaningless."""
        ...

    def advance(self, tokens_NR: torch.Tensor) -> torch.Tensor:
        """Appends one token to every row. Returns the logits of the next tokens, (N, R, V) fp32."""
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

    def shares_prompts(self, checkpointing: bool) -> bool:
        """Returns whether `states` computes a prompt once for all completions that follow it."""
        ...

    def states(
        self,
        adapter: Adapter,
        sequences_S: Sequence[tuple[Tokens, Tokens]],
        checkpointing: bool,
        upper: bool = False,
    ) -> States:
        """Returns the states that predict every completion token, sequence after sequence, differentiable with
        respect to the adapter; with `upper` perhaps only to that of the upper half of the layers."""
        ...

    def rollout(self, adapters_N: Sequence[Adapter]) -> Rollout:
        """Returns a fresh batch under the adapters' current values."""
        ...

    def plain_rollout(self) -> Rollout:
        """Returns a fresh batch of the base model without an adapter, as one node."""
        ...

    def row_bytes(self, tokens: int) -> int:
        """Returns the bytes of one sampled row of `tokens` tokens."""
        ...

    def token_bytes(self, checkpointing: bool) -> int:
        """Returns roughly the bytes that the learner keeps per token until its backward pass."""
        ...

    def nodes_per_pass(self, free_bytes: int) -> int:
        """Returns how many adapters can sample together, by the memory of their merged weights; at least 1."""
        ...
