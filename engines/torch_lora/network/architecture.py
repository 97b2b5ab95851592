"""Rotary angles as tensors. What shape a decoder has is read in engines.models.architecture."""

from __future__ import annotations

import math

import torch

from engines.models.architecture import Rope


def frequencies(rope: Rope, head_dim: int) -> torch.Tensor:
    """Angle per position of each pair of dimensions, (head_dim / 2,) fp32.

    Llama 3 divides slow frequencies by `factor`, keeps fast ones, blends between (Llama 3.1 reference code)."""
    plain = 1.0 / rope.theta ** (torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
    if rope.kind == "linear":
        return plain / rope.factor
    if rope.kind != "llama3":
        return plain
    turns = rope.original_context * plain / (2 * math.pi)
    blend = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    blend = blend.clamp(0.0, 1.0)
    return (1 - blend) * plain / rope.factor + blend * plain


def angles(
    positions_M: torch.Tensor, frequencies_D: torch.Tensor, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine, each (..., head_dim / 2), computed in fp32 and then cast."""
    turned = positions_M[..., None].float() * frequencies_D
    return turned.cos().to(dtype), turned.sin().to(dtype)
