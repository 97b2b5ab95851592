"""Keeps what the lower half of the layers returns, for lessons that teach only the upper half.

A lesson goes over the same rows several times. As long as the lower half of its adapter adds nothing, the
states between the halves are those of the frozen model, the same in every pass: they are computed once, and
every later pass costs half."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from engines.torch_lora.network.adapter import Adapter
from engines.torch_lora.network.layout import Layout, Tokens

_Key = tuple[tuple[int, ...], tuple[int, ...]]


class LowerStates:
    """The states between the halves of some sequences, in at most `most_bytes`: then no more are added, as a
    pass that goes round would always drop the one it needs next."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._kept: dict[_Key, torch.Tensor] = {}

    def clear(self) -> None:
        self._kept.clear()
        self._bytes = 0

    def find(self, layout: Layout, sequences_S: Sequence[tuple[Tokens, Tokens]]) -> torch.Tensor | None:
        """Returns the packed states (M, d), None unless all are known."""
        places = list(_places(layout, sequences_S))
        if any(key not in self._kept for key, _ in places):
            return None
        first = self._kept[places[0][0]]
        states_Md = first.new_empty(len(layout.tokens_M), first.shape[1])
        for key, place in places:
            states_Md[place] = self._kept[key]
        return states_Md

    def keep(
        self, layout: Layout, sequences_S: Sequence[tuple[Tokens, Tokens]], states_Md: torch.Tensor
    ) -> None:
        """Adds the packed states (M, d) of these sequences."""
        for key, place in _places(layout, sequences_S):
            states = states_Md[place]
            size = states.numel() * states.itemsize
            if key not in self._kept and self._bytes + size <= self._most_bytes:
                self._kept[key] = states
                self._bytes += size


def _places(
    layout: Layout, sequences_S: Sequence[tuple[Tokens, Tokens]]
) -> Iterator[tuple[_Key, torch.Tensor]]:
    """Yields the places of each prompt's tokens, shared ones too, and of each completion's tokens that are
    read."""
    prompts = dict.fromkeys(tuple(prompt) for prompt, _ in sequences_S)
    for prompt, place_L in zip(prompts, layout.prompt_PL, strict=True):
        yield (prompt, ()), place_L[: len(prompt)]
    read_S = [(tuple(prompt), tuple(completion[:-1])) for prompt, completion in sequences_S]
    start = len(layout.tokens_M) - sum(len(read) for _, read in read_S)
    for key in read_S:
        if key[1]:
            yield key, torch.arange(start, start + len(key[1]), device=layout.tokens_M.device)
            start += len(key[1])


def adds_nothing(adapter: Adapter, projections: int) -> bool:
    """Whether an adapter adds nothing in the first `projections` ones, as before its first step."""
    return not any(bool(pair.b.any()) for pair in adapter.pairs[:projections])
