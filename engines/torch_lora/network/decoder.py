"""Our own Llama-like decoder for learning: packed tokens, shared prompts, LoRA beside frozen weights.

Layers that share an input are one matrix (q, k, v; gate, up). Tests check that it equals transformers' Qwen2,
Qwen3 and Llama up to rounding. The shape of a decoder is read in engines.models.folder."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch.nn import functional

from engines.models.folder import Architecture, Rope
from engines.torch_lora.network.adapter import Adapter, Projection, ProjectionPair
from engines.torch_lora.network.functions import gated_lora, lora_linear, normed_lora, rms_norm, rotate
from engines.torch_lora.network.layout import Layout


def frequencies(rope: Rope, head_dim: int) -> torch.Tensor:
    """Returns the rotary angle per position of each pair of dimensions, (head_dim / 2,) fp32. Llama 3 divides
    slow frequencies by `factor`, keeps fast ones, and blends between (Llama 3.1 reference code)."""
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
    """Returns cosine and sine of the rotary angles, each (..., head_dim / 2), computed in fp32 and then
    cast."""
    turned = positions_M[..., None].float() * frequencies_D
    return turned.cos().to(dtype), turned.sin().to(dtype)


PROJECTIONS = 4
"""Projections per layer, in this order: qkv, o, gate and up, down."""


@dataclass(frozen=True)
class Linear:
    """A frozen fused matrix (out, in) with its bias."""

    weight: torch.Tensor
    bias: torch.Tensor | None


@dataclass(frozen=True)
class Layer:
    """Frozen weights of one layer; `query_norm` and `key_norm` only in Qwen3."""

    attention_norm: torch.Tensor
    qkv: Linear
    query_norm: torch.Tensor | None
    key_norm: torch.Tensor | None
    out: Linear
    mlp_norm: torch.Tensor
    gate_up: Linear
    down: Linear

    @property
    def linears(self) -> tuple[Linear, Linear, Linear, Linear]:
        return self.qkv, self.out, self.gate_up, self.down


@dataclass(frozen=True)
class Weights:
    """A whole frozen decoder; `head` (V, d) is the embedding itself if tied."""

    shape: Architecture
    embedding: torch.Tensor
    layers: tuple[Layer, ...]
    norm: torch.Tensor
    head: torch.Tensor

    @property
    def dtype(self) -> torch.dtype:
        return self.embedding.dtype

    def matrices(self) -> Iterator[torch.Tensor]:
        """Yields each large tensor once."""
        yield self.embedding
        if self.head is not self.embedding:
            yield self.head
        for layer in self.layers:
            for linear in layer.linears:
                yield linear.weight


def projections(shape: Architecture) -> list[Projection]:
    """Returns the projections that LoRA adapts: all linear layers of the decoder, fused as the decoder computes
    them."""
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    found = []
    for index in range(shape.layers):
        at, mlp = f"model.layers.{index}.self_attn", f"model.layers.{index}.mlp"
        found += [
            Projection((f"{at}.q_proj", f"{at}.k_proj", f"{at}.v_proj"), shape.hidden, (queries, keys, keys)),
            Projection((f"{at}.o_proj",), queries, (shape.hidden,)),
            Projection((f"{mlp}.gate_proj", f"{mlp}.up_proj"), shape.hidden, (shape.inner, shape.inner)),
            Projection((f"{mlp}.down_proj",), shape.inner, (shape.hidden,)),
        ]
    return found


def completion_hidden_states(
    weights: Weights,
    adapter: Adapter,
    layout: Layout,
    checkpointing: bool = False,
    between_Md: torch.Tensor | None = None,
) -> torch.Tensor:
    """Returns the normed hidden states (C, d) at the positions that predict the completions' tokens. With
    `checkpointing`, layers are recomputed in the backward pass instead of kept. `between_Md`: what the lower
    half of the layers returns (`lower_states`), if that is known."""
    if between_Md is None:
        x_Md = functional.embedding(layout.tokens_M, weights.embedding)
        x_Md = _layers(weights, adapter, layout, x_Md, range(weights.shape.layers), checkpointing)
    else:
        x_Md = _layers(
            weights,
            adapter,
            layout,
            between_Md,
            range(half(weights.shape), weights.shape.layers),
            checkpointing,
        )
    return rms_norm(x_Md[layout.predict_C], weights.norm, weights.shape.eps)


def half(shape: Architecture) -> int:
    """Returns the number of layers in the lower half."""
    return shape.layers // 2


@torch.no_grad()
def lower_states(weights: Weights, adapter: Adapter, layout: Layout) -> torch.Tensor:
    """Returns the states (M, d) between the lower and the upper half of the layers."""
    x_Md = functional.embedding(layout.tokens_M, weights.embedding)
    return _layers(weights, adapter, layout, x_Md, range(half(weights.shape)), False)


def _layers(
    weights: Weights, adapter: Adapter, layout: Layout, x_Md: torch.Tensor, layers: range, checkpointing: bool
) -> torch.Tensor:
    shape = weights.shape
    turns_D = frequencies(shape.rope, shape.head_dim).to(layout.tokens_M.device)
    cos, sin = angles(layout.positions_M, turns_D, weights.dtype)
    cos, sin = cos[:, None], sin[:, None]
    for index in layers:
        layer = weights.layers[index]
        pairs = adapter.pairs[index * PROJECTIONS : (index + 1) * PROJECTIONS]

        def run(
            x: torch.Tensor, layer: Layer = layer, pairs: tuple[ProjectionPair, ...] = pairs
        ) -> torch.Tensor:
            return _layer(shape, layer, pairs, adapter.scale, layout, x, cos, sin)

        x_Md = _recomputed(run, x_Md) if checkpointing and torch.is_grad_enabled() else run(x_Md)
    return x_Md


def _recomputed(run: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    from torch.utils.checkpoint import checkpoint  # only here: it imports torch's compiler, a second and a half

    out: torch.Tensor = checkpoint(run, x, use_reentrant=False)
    return out


def _layer(
    shape: Architecture,
    layer: Layer,
    pairs: tuple[ProjectionPair, ...],
    scale: float,
    layout: Layout,
    x_Md: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
) -> torch.Tensor:
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    qkv_pair, out_pair, gate_up_pair, down_pair = pairs

    def normed(
        x: torch.Tensor, norm: torch.Tensor, into: Linear, pair: ProjectionPair, *widths: int
    ) -> torch.Tensor:
        return normed_lora(x, norm, shape.eps, into.weight, into.bias, pair.a, pair.b, scale, widths)

    qkv = normed(x_Md, layer.attention_norm, layer.qkv, qkv_pair, queries, keys, keys)
    q, k, v = torch.split(qkv, [queries, keys, keys], 1)
    q = q.view(-1, shape.heads, shape.head_dim)
    k = k.view(-1, shape.kv_heads, shape.head_dim)
    if layer.query_norm is not None and layer.key_norm is not None:
        q, k = rms_norm(q, layer.query_norm, shape.eps), rms_norm(k, layer.key_norm, shape.eps)
    attended = _attention(shape, layout, rotate(q, cos, sin), rotate(k, cos, sin), v)
    x_Md = x_Md + lora_linear(
        attended, layer.out.weight, layer.out.bias, out_pair.a, out_pair.b, scale, (shape.hidden,)
    )

    gate_up = normed(x_Md, layer.mlp_norm, layer.gate_up, gate_up_pair, shape.inner, shape.inner)
    return x_Md + gated_lora(
        gate_up, layer.down.weight, layer.down.bias, down_pair.a, down_pair.b, scale, (shape.hidden,)
    )


def _attention(
    shape: Architecture, layout: Layout, q_MHD: torch.Tensor, k_MHD: torch.Tensor, v: torch.Tensor
) -> torch.Tensor:
    """Computes attention, (M, heads * head_dim): prompts attend to themselves, completions to their prompt and
    themselves. On a processor in 32 bits: torch's bf16 attention takes three times as long there."""
    q, k = q_MHD.flatten(1), k_MHD.flatten(1)
    dtype = v.dtype
    if v.device.type == "cpu":
        q, k, v = q.float(), k.float(), v.float()
    blocks = [_block(shape, q, k, v, layout.prompt_query_PQ, layout.prompt_PL, layout.prompt_mask_PQL)]
    if layout.query_SL.numel():
        blocks.append(_block(shape, q, k, v, layout.query_SL, layout.key_SK, layout.mask_SLK))
    return torch.cat(blocks)[layout.unpad_M].to(dtype)


def _block(
    shape: Architecture,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    queries_BL: torch.Tensor,
    keys_BK: torch.Tensor,
    mask_BLK: torch.Tensor,
) -> torch.Tensor:
    """Computes grouped-query attention: the queries of one key head are stacked along the length."""
    batch, length = queries_BL.shape
    groups = shape.heads // shape.kv_heads
    q = q[queries_BL].view(batch, length, shape.kv_heads, groups, shape.head_dim)
    q = q.permute(0, 2, 3, 1, 4).reshape(batch, shape.kv_heads, groups * length, shape.head_dim)
    k = k[keys_BK].view(batch, -1, shape.kv_heads, shape.head_dim).transpose(1, 2)
    v = v[keys_BK].view(batch, -1, shape.kv_heads, shape.head_dim).transpose(1, 2)
    mask = mask_BLK[:, None].repeat(1, 1, groups, 1)
    out = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    out = out.view(batch, shape.kv_heads, groups, length, shape.head_dim).permute(0, 3, 1, 2, 4)
    return out.reshape(batch * length, shape.heads * shape.head_dim)
