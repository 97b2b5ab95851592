"""Packing prompts and completions into one row of tokens without padding, each distinct prompt once.

A group's completions share their prompt's keys and values: 8 completions of 30 tokens over a prompt of 30
cost 262 tokens instead of 480. Only attention sees padded blocks, gathered by the index tensors made here.
Sizes: M tokens in all, P distinct prompts of at most L tokens, S completions that feed at least one token, at
most L each, K = longest prompt + longest completion, C predicted tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engines.batches import Tokens as Tokens


@dataclass(frozen=True)
class Layout:
    """Index tensors of one packed forward pass. Gathers of padding point at token 0 and are never read back."""

    tokens_M: torch.Tensor
    positions_M: torch.Tensor
    prompt_PL: torch.Tensor
    prompt_mask_LL: torch.Tensor
    query_SL: torch.Tensor
    key_SK: torch.Tensor
    mask_SLK: torch.Tensor
    unpad_M: torch.Tensor
    predict_C: torch.Tensor
    targets_C: torch.Tensor


def pack(sequences_S: Sequence[tuple[Tokens, Tokens]], device: torch.device) -> Layout:
    """Packs sequences that passed `check_tokens`. Predicted tokens come out in the order of the sequences."""
    prompt_of: dict[tuple[int, ...], int] = {}
    owner = [prompt_of.setdefault(tuple(prompt), len(prompt_of)) for prompt, _ in sequences_S]
    prompts = list(prompt_of)
    fed = [completion[:-1] for _, completion in sequences_S]
    prompt_lengths = torch.tensor([len(p) for p in prompts])
    fed_lengths = torch.tensor([len(f) for f in fed])
    tokens = torch.tensor([t for p in prompts for t in p] + [t for f in fed for t in f])
    prompt_starts = prompt_lengths.cumsum(0) - prompt_lengths
    base = int(prompt_lengths.sum())
    fed_starts = base + fed_lengths.cumsum(0) - fed_lengths
    owner_S = torch.tensor(owner)
    before_S = prompt_lengths[owner_S]

    longest_prompt = int(prompt_lengths.max())
    prompt_inside_PL = torch.arange(longest_prompt) < prompt_lengths[:, None]
    prompt_PL = (prompt_starts[:, None] + torch.arange(longest_prompt)) * prompt_inside_PL

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
    positions = torch.cat(
        [torch.arange(longest_prompt).expand(len(prompts), -1)[prompt_inside_PL], fed_positions_SL[inside_SL]]
    )
    padded_prompts = len(prompts) * longest_prompt
    unpad = torch.cat(
        [
            prompt_inside_PL.flatten().nonzero()[:, 0],
            padded_prompts + inside_SL.flatten().nonzero()[:, 0],
        ]
    )
    last_prompt_S = (prompt_starts + prompt_lengths - 1)[owner_S]
    predict = [
        index
        for last, start, (_, completion) in zip(
            last_prompt_S.tolist(), fed_starts.tolist(), sequences_S, strict=True
        )
        if completion
        for index in (last, *range(start, start + len(completion) - 1))
    ]
    targets = [t for _, completion in sequences_S for t in completion]

    def move(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(device)

    return Layout(
        tokens_M=move(tokens),
        positions_M=move(positions),
        prompt_PL=move(prompt_PL),
        prompt_mask_LL=move(torch.ones(longest_prompt, longest_prompt, dtype=torch.bool).tril()),
        query_SL=move(query_SL),
        key_SK=move(key_SK),
        mask_SLK=move(mask_SLK),
        unpad_M=move(unpad),
        predict_C=move(torch.tensor(predict, dtype=torch.long)),
        targets_C=move(torch.tensor(targets, dtype=torch.long)),
    )
