"""Opening a study's swarm: every model is read once, adapters are fresh for each run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.lab.mixed import Mixed
from app.lab.plan import Plan, identity
from app.lab.swarm import Swarm
from app.sapo.seeds import sampling_seed
from engines.models.folder import open_folder, read_json
from engines.models.tokens import ChatTokenizer

if TYPE_CHECKING:
    from engines.torch_lora import TorchSwarm


class Opener:
    """Gives the swarm of a plan and a seed. Torch is only imported when one is wanted.

    `folders_N` are the models' folders node by node, `starters_N` those of the adapters that nodes of one model
    begin with, if any."""

    def __init__(
        self, folders_N: Sequence[Path], starters_N: Sequence[Path], device: str, threads: int | None
    ) -> None:
        self._folders_N, self._starters_N = folders_N, starters_N
        self._device, self._threads = device, threads
        self._opened: dict[Path, TorchSwarm] = {}

    def __call__(self, plan: Plan, seed: int) -> Swarm:
        adapters_N = [sampling_seed(identity(seed, node), 0, "adapter") for node in range(plan.nodes)]
        folders_M = list(dict.fromkeys(self._folders_N))
        member_N = [folders_M.index(folder) for folder in self._folders_N]
        members = [
            self._fresh(folder, plan, [seed for seed, at in zip(adapters_N, member_N, strict=True) if at == m])
            for m, folder in enumerate(folders_M)
        ]
        if len(members) > 1:
            return Mixed(members, member_N)
        (swarm,) = members
        for node, starter in enumerate(self._starters_N):
            swarm.load(node, starter)
        return swarm

    def _fresh(self, folder: Path, plan: Plan, adapters_N: list[int]) -> TorchSwarm:
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
