"""A swarm of several: nodes whose models differ, each dealt to the member swarm of its own model.

Shapes: `_M` members, `_N` nodes, `_P` prompts, `_G` completions of a group, `_S` sequences.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.lab.swarm import Swarm
from engines.contract import Batch, Completion, Messages, StepStats, TokenSequence


class Mixed:
    """Implements `app.lab.swarm.Swarm`. Members must read text alike: the first one reads for all.

    A node does exactly what it would do among nodes of its own model alone."""

    def __init__(self, members_M: Sequence[Swarm], member_N: Sequence[int]) -> None:
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

    def step(self, node: int, batch: Batch) -> StepStats:
        member, number = self._at_N[node]
        return member.step(number, batch)

    def follow(self, decay: float) -> None:
        for member in self._members_M:
            member.follow(decay)

    def swap_means(self) -> None:
        for member in self._members_M:
            member.swap_means()
