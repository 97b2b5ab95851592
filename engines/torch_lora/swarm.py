"""Many nodes in one process for the lab: one frozen model, an adapter and optimiser each, sampled together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from engines.contract import Batch, Completion, Messages, StepStats, TokenSequence
from engines.torch_lora.engine import Base


class TorchSwarm:
    """Each method is that of `engines.contract.Engine` with the node's number in front.

    A node does exactly what an engine of its own with the same seed would do."""

    def __init__(self, base: Base, seeds_N: Sequence[int]) -> None:
        self._base = base
        self._adapters_N = [base.new_adapter(seed) for seed in seeds_N]
        self.info = base.info(self._adapters_N[0].values.numel())

    @property
    def nodes(self) -> int:
        return len(self._adapters_N)

    @property
    def notes(self) -> list[str]:
        return self._base.notes

    def encode(self, prompt: Messages, completion: str, finished: bool) -> TokenSequence:
        return self._base.encode(prompt, completion, finished)

    def prompt_tokens(self, prompt: Messages) -> list[int]:
        return self._base.tokenizer.prompt(prompt)

    def sample(
        self, prompts_NP: Sequence[Sequence[Messages]], n: int, max_tokens: int, seeds_N: Sequence[int]
    ) -> list[list[list[Completion]]]:
        """Completions as [node][prompt][completion]. Nodes may have different numbers of prompts, also none."""
        if len(prompts_NP) != self.nodes or len(seeds_N) != self.nodes:
            raise ValueError(f"sample needs prompts and a seed for each of {self.nodes} nodes")
        return self._base.sample(self._adapters_N, prompts_NP, n, max_tokens, seeds_N)

    def logprobs(self, node: int, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        return self._base.logprobs(self._adapters_N[node], sequences_S)

    def step(self, node: int, batch: Batch) -> StepStats:
        return self._base.step(self._adapters_N[node], batch)

    def save(self, node: int, folder: Path) -> None:
        self._base.save(self._adapters_N[node], folder)

    def load(self, node: int, folder: Path) -> None:
        self._base.load(self._adapters_N[node], folder)

    def hold_a(self) -> None:
        """All nodes get the first one's A and learn B alone."""
        for adapter in self._adapters_N:
            adapter.hold_a(self._adapters_N[0])

    def values(self, node: int) -> torch.Tensor:
        """A copy of a node's adapter, flat, in the order of its buffer."""
        return self._adapters_N[node].values.detach().clone()

    def put(self, node: int, values: torch.Tensor) -> None:
        """Replaces a node's adapter; its optimiser goes on as it was."""
        adapter = self._adapters_N[node]
        adapter.replace(values, adapter.moments_1, adapter.moments_2, adapter.steps)

    def begin_anew(self, node: int) -> None:
        """Forgets a node's optimiser and keeps what it has learnt."""
        self._adapters_N[node].begin_anew()

    def reset(self, seeds_N: Sequence[int]) -> None:
        """Fresh adapters, for the next run on the same base."""
        self._adapters_N = [self._base.new_adapter(seed) for seed in seeds_N]


def open_swarm(
    model: str | Path,
    seeds_N: Sequence[int],
    *,
    rank: int | None = None,
    device: str = "auto",
    threads: int | None = None,
) -> TorchSwarm:
    """One node for each seed over one base; see `open_engine`."""
    return TorchSwarm(Base(model, rank=rank, device=device, threads=threads), seeds_N)
