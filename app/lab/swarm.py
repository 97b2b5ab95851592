"""The engine interface that the lab needs: many adapters over one frozen base, sampled in one batch; and
opening one for a study, where the model is loaded once and adapters are new for each run.

`engines.torch_lora.TorchSwarm` implements it; tests use a small artificial one. Shapes: `_N` nodes, `_P`
prompts, `_G` completions of a group, `_S` sequences, `_T` tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from app.lab.plan import StudyPlan, identity
from app.sapo.seeds import sampling_seed
from engines.contract import Batch, Completion, Messages, StepStats, TokenSequence

if TYPE_CHECKING:
    from engines.torch_lora import TorchSwarm


class LabSwarm(Protocol):
    """N nodes, each with its own adapter and optimiser, numbered from 0."""

    def prompt_tokens(self, prompt: Messages) -> list[int]: ...

    def encode(self, prompt: Messages, completion: str, finished: bool) -> TokenSequence: ...

    def sample(
        self, prompts_NP: Sequence[Sequence[Messages]], n: int, max_tokens: int, seeds_N: Sequence[int]
    ) -> list[list[list[Completion]]]:
        """Samples `n` completions for every prompt of every node, all rows in one batch. Nodes may have
        different numbers of prompts."""
        ...

    def logprobs(self, node: int, sequences_S: Sequence[TokenSequence]) -> list[list[float]]: ...

    def base_logprobs(self, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        """Log probs under the untrained base model, which anyone can download."""
        ...

    def step(self, node: int, batch: Batch) -> StepStats: ...


class SwarmOpener:
    """Opens the swarm of a plan and a seed over the model in `folder`. Imports Torch only on the first call."""

    def __init__(self, folder: Path, device: str, threads: int | None) -> None:
        self._folder, self._device, self._threads = folder, device, threads
        self._opened: TorchSwarm | None = None

    def __call__(self, plan: StudyPlan, seed: int) -> LabSwarm:
        adapters_N = [sampling_seed(identity(seed, node), 0, "adapter") for node in range(plan.nodes)]
        if self._opened is not None:
            self._opened.reset(adapters_N)
        else:
            from engines.torch_lora import open_swarm

            self._opened = open_swarm(
                self._folder, adapters_N, rank=plan.rank, device=self._device, threads=self._threads
            )
        return self._opened
