"""Many nodes in one process for the lab: one frozen model, an adapter and optimiser each, sampled together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from engines.contract import Batch, Completion, EngineOptions, Messages, StepStats, TokenSequence
from engines.torch_lora.engine import Base, OnBase


class TorchSwarm(OnBase):
    """Each method is that of `engines.contract.Engine` with the node's number in front.

    A node does exactly what an engine of its own with the same seed would do."""

    def __init__(self, base: Base, seeds_N: Sequence[int]) -> None:
        super().__init__(base)
        self._adapters_N = [base.new_adapter(seed) for seed in seeds_N]
        self.info = base.info(self._adapters_N[0].values.numel())

    @property
    def nodes(self) -> int:
        return len(self._adapters_N)

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

    def begin_anew(self, node: int) -> None:
        """Forgets a node's optimiser and keeps what it has learnt."""
        self._adapters_N[node].begin_anew()

    def reset(self, seeds_N: Sequence[int]) -> None:
        """Fresh adapters, for the next run on the same base."""
        self._adapters_N = [self._base.new_adapter(seed) for seed in seeds_N]


def open_swarm(model: str | Path, seeds_N: Sequence[int], **options: Unpack[EngineOptions]) -> TorchSwarm:
    """One node for each seed over one base; see `open_engine`."""
    return TorchSwarm(Base(model, **options), seeds_N)
