"""Packs prompts and completions into one row of tokens without padding, each distinct prompt once.

A group's completions share their prompt's keys and values: 8 completions of 30 tokens over a prompt of 30 cost
262 tokens instead of 480. Prompts with a common prefix, such as the same system message, share the prefix in
the same way: a chat template and a system message are a third of a short question. Only attention uses padded
blocks, gathered by the index tensors built here.
Sizes: M tokens in all, P distinct prompts of at most L tokens, of which at most Q are their own, S completions
that feed at least one token, at most L each, K = longest prompt + longest completion, C predicted tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import torch

from engines.batches import Tokens as Tokens


@dataclass(frozen=True)
class Layout:
    """Index tensors of one packed forward pass. Padding indices point at token 0, and their results are never
    used."""

    tokens_M: torch.Tensor
    positions_M: torch.Tensor
    prompt_query_PQ: torch.Tensor
    prompt_PL: torch.Tensor
    prompt_mask_PQL: torch.Tensor
    query_SL: torch.Tensor
    key_SK: torch.Tensor
    mask_SLK: torch.Tensor
    unpad_M: torch.Tensor
    predict_C: torch.Tensor


def pack(
    sequences_S: Sequence[tuple[Tokens, Tokens]], device: torch.device, least_shared: int | None = None
) -> Layout:
    """Packs sequences that passed `check_tokens`. Predicted tokens come out in the order of the sequences.
    Prompts that share a prefix of `least_shared` or more tokens compute it once; with None, none do."""
    prompt_of: dict[tuple[int, ...], int] = {}
    owner = [prompt_of.setdefault(tuple(prompt), len(prompt_of)) for prompt, _ in sequences_S]
    prompts = list(prompt_of)
    fed = [completion[:-1] for _, completion in sequences_S]
    shared_P, keys_P = _shared(prompts, least_shared)
    prompt_lengths, own_lengths = (
        torch.tensor([len(p) for p in prompts]),
        torch.tensor([len(p) - shared for p, shared in zip(prompts, shared_P, strict=True)]),
    )
    fed_lengths = torch.tensor([len(f) for f in fed])
    tokens = torch.tensor(
        [t for p, shared in zip(prompts, shared_P, strict=True) for t in p[shared:]]
        + [t for f in fed for t in f]
    )
    own_starts = own_lengths.cumsum(0) - own_lengths
    base = int(own_lengths.sum())
    fed_starts = base + fed_lengths.cumsum(0) - fed_lengths
    owner_S = torch.tensor(owner)
    before_S = prompt_lengths[owner_S]

    longest_prompt, most_own = int(prompt_lengths.max()), int(own_lengths.max())
    prompt_inside_PL = torch.arange(longest_prompt) < prompt_lengths[:, None]
    prompt_PL = torch.tensor([keys + [0] * (longest_prompt - len(keys)) for keys in keys_P])
    own_inside_PQ = torch.arange(most_own) < own_lengths[:, None]
    prompt_query_PQ = (own_starts[:, None] + torch.arange(most_own)) * own_inside_PQ
    position_PQ = torch.tensor(shared_P)[:, None] + torch.arange(most_own)
    prompt_mask_PQL = torch.arange(longest_prompt) <= position_PQ[:, :, None]

    rows = fed_lengths.nonzero()[:, 0]  # a completion of one token is predicted by its prompt alone
    longest = int(fed_lengths.max())
    inside_SL = torch.arange(longest) < fed_lengths[rows, None]
    query_SL = (fed_starts[rows, None] + torch.arange(longest)) * inside_SL
    key_SK = torch.cat([prompt_PL[owner_S[rows]], query_SL], 1)
    own_LL = torch.ones(longest, longest, dtype=torch.bool).tril()
    mask_SLK = torch.cat(
        [
            prompt_inside_PL[owner_S[rows]][:, None, :].expand(-1, longest, -1),
            own_LL.expand(len(rows), -1, -1),
        ],
        2,
    )

    fed_positions_SL = before_S[rows, None] + torch.arange(longest)
    positions = torch.cat([position_PQ[own_inside_PQ], fed_positions_SL[inside_SL]])
    padded_prompts = len(prompts) * most_own
    unpad = torch.cat(
        [
            own_inside_PQ.flatten().nonzero()[:, 0],
            padded_prompts + inside_SL.flatten().nonzero()[:, 0],
        ]
    )
    last_prompt_S = (own_starts + own_lengths - 1)[owner_S]
    predict = [
        index
        for last, start, (_, completion) in zip(
            last_prompt_S.tolist(), fed_starts.tolist(), sequences_S, strict=True
        )
        if completion
        for index in (last, *range(start, start + len(completion) - 1))
    ]

    def move(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(device)

    return Layout(
        tokens_M=move(tokens),
        positions_M=move(positions),
        prompt_query_PQ=move(prompt_query_PQ),
        prompt_PL=move(prompt_PL),
        prompt_mask_PQL=move(prompt_mask_PQL),
        query_SL=move(query_SL),
        key_SK=move(key_SK),
        mask_SLK=move(mask_SLK),
        unpad_M=move(unpad),
        predict_C=move(torch.tensor(predict, dtype=torch.long)),
    )


def _equal(pair: tuple[int, int]) -> bool:
    return pair[0] == pair[1]


def _shared(prompts: Sequence[Sequence[int]], least: int | None) -> tuple[list[int], list[list[int]]]:
    """Returns how many of each prompt's first tokens an earlier prompt computes for it, and the index of each
    of its tokens. At least one token of each prompt stays its own.

    >>> _shared([(1, 2, 3), (1, 2, 4, 5), (1, 2)], 1)
    ([0, 2, 1], [[0, 1, 2], [0, 1, 3, 4], [0, 5]])
    """
    shared_P: list[int] = []
    places_P: list[list[int]] = []
    start = 0
    for prompt in prompts:
        common = 0
        places: list[int] = []
        for earlier, known in zip(prompts, places_P, strict=False) if least is not None else ():
            alike = sum(1 for _ in takewhile(_equal, zip(prompt[:-1], earlier, strict=False)))
            if alike > common:
                common, places = alike, known[:alike]
        if least is None or common < least:
            common, places = 0, []
        own = len(prompt) - common
        shared_P.append(common)
        places_P.append([*places, *range(start, start + own)])
        start += own
    return shared_P, places_P
