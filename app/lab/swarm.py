"""The swarm that the lab needs of an engine: many adapters over one frozen base, sampled in one batch; and
opening one for a study, where every model is read once and adapters are fresh for each run.

`engines.torch_lora.TorchSwarm` is one; tests use a small made-up one. Shapes: `_N` nodes, `_P` prompts, `_G`
completions of a group, `_S` sequences, `_T` tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from app.lab.plan import StudyPlan, identity
from app.sapo.seeds import sampling_seed
from engines.contract import Batch, Completion, Messages, StepStats, TokenSequence
from engines.models.folder import open_folder, read_json
from engines.models.tokens import ChatTokenizer

if TYPE_CHECKING:
    from engines.torch_lora import TorchSwarm


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

    def untrained(self, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        """Log-probs under the model as it came, which anyone has."""
        ...

    def step(self, node: int, batch: Batch) -> StepStats: ...


class SwarmOpener:
    """Gives the swarm of a plan and a seed. Torch is only imported when one is wanted.

    `folders_N` are the models' folders node by node, `starters_N` those of the adapters that nodes of one model
    begin with, if any."""

    def __init__(
        self, folders_N: Sequence[Path], starters_N: Sequence[Path], device: str, threads: int | None
    ) -> None:
        self._folders_N, self._starters_N = folders_N, starters_N
        self._device, self._threads = device, threads
        self._opened: dict[Path, TorchSwarm] = {}

    def __call__(self, plan: StudyPlan, seed: int) -> LabSwarm:
        adapters_N = [sampling_seed(identity(seed, node), 0, "adapter") for node in range(plan.nodes)]
        folders_M = list(dict.fromkeys(self._folders_N))
        member_N = [folders_M.index(folder) for folder in self._folders_N]
        members = [
            self._fresh(folder, plan, [seed for seed, at in zip(adapters_N, member_N, strict=True) if at == m])
            for m, folder in enumerate(folders_M)
        ]
        if len(members) > 1:
            return MixedSwarm(members, member_N)
        (swarm,) = members
        for node, starter in enumerate(self._starters_N):
            swarm.load(node, starter)
        return swarm

    def _fresh(self, folder: Path, plan: StudyPlan, adapters_N: list[int]) -> TorchSwarm:
        from engines.torch_lora import open_swarm

        if folder in self._opened:
            self._opened[folder].reset(adapters_N)
        else:
            self._opened[folder] = open_swarm(
                folder, adapters_N, rank=plan.rank, device=self._device, threads=self._threads
            )
        return self._opened[folder]


def read_alike(one: Path, other: Path) -> bool:
    """Whether two models turn text into the same tokens: tokenizer.json, chat template and end token are the
    same. Raises EngineError for a folder that is no model."""
    return one == other or _reading(one) == _reading(other)


def _reading(folder: Path) -> tuple[Any, str | None, int]:
    file = folder / "tokenizer.json"
    tokenizer = ChatTokenizer(open_folder(folder))
    return read_json(file) if file.is_file() else folder, tokenizer.template, tokenizer.end


class MixedSwarm:
    """Implements `app.lab.swarm.LabSwarm`. Members must read text alike: the first one reads for all.

    A node does exactly what it would do among nodes of its own model alone."""

    def __init__(self, members_M: Sequence[LabSwarm], member_N: Sequence[int]) -> None:
        """`member_N`: the member that each node belongs to; a member's nodes keep their order."""
        self._members_M = members_M
        self._nodes_M = [[node for node, at in enumerate(member_N) if at == m] for m in range(len(members_M))]
        self._at_N = [(members_M[m], self._nodes_M[m].index(node)) for node, m in enumerate(member_N)]

    def prompt_tokens(self, prompt: Messages) -> list[int]:
        return self._members_M[0].prompt_tokens(prompt)

    def encode(self, prompt: Messages, completion: str, finished: bool) -> TokenSequence:
        return self._members_M[0].encode(prompt, completion, finished)

    def sample(
        self, prompts_NP: Sequence[Sequence[Messages]], n: int, max_tokens: int, seeds_N: Sequence[int]
    ) -> list[list[list[Completion]]]:
        """One batch a member. Raises ValueError without prompts and a seed for each node."""
        if not len(prompts_NP) == len(seeds_N) == len(self._at_N):
            raise ValueError(f"sample needs prompts and a seed for each of {len(self._at_N)} nodes")
        groups_NPG: list[list[list[Completion]]] = [[] for _ in self._at_N]
        for member, nodes in zip(self._members_M, self._nodes_M, strict=True):
            sampled = member.sample(
                [prompts_NP[node] for node in nodes], n, max_tokens, [seeds_N[node] for node in nodes]
            )
            for node, groups_PG in zip(nodes, sampled, strict=True):
                groups_NPG[node] = groups_PG
        return groups_NPG

    def logprobs(self, node: int, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        member, number = self._at_N[node]
        return member.logprobs(number, sequences_S)

    def untrained(self, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        return self._members_M[0].untrained(sequences_S)

    def step(self, node: int, batch: Batch) -> StepStats:
        member, number = self._at_N[node]
        return member.step(number, batch)
