"""The Network of our own decoder, and reading its weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn

import torch
from torch.nn import functional

from engines.contract import EngineError
from engines.models.folder import Architecture, Folder, open_weights
from engines.torch_lora.network import decoder
from engines.torch_lora.network.adapter import Adapter, Projection
from engines.torch_lora.network.decoder import Layer, Linear, Weights, angles, frequencies
from engines.torch_lora.network.device import ONE_THREAD_PARAMETERS, skinny_is_faster
from engines.torch_lora.network.functions import rotate_halves
from engines.torch_lora.network.layout import Layout, Tokens, pack
from engines.torch_lora.network.logprobs import States
from engines.torch_lora.network.lower import LowerStates, adds_nothing
from engines.torch_lora.network.matrices import (
    FusedMatrices,
    MergedWeights,
    PlainWeights,
    UnmergedWeights,
    linear,
    merges,
)
from engines.torch_lora.network.network import Rollout

PREFILL_TOKENS = 4096
"""Maximum prompt tokens read in one pass; more would only make the activations larger."""


class DecoderRollout:
    """Sampling with our own decoder: a static KV cache, and matrices that include the adapters.

    The sampling loop (engines.torch_lora.sampler) calls `prefill` once, which reads each prompt once and
    copies its keys and values to the rows of its completions; then `advance` for every token of all rows;
    and occasionally `keep`, when enough rows have finished. A rollout owns its cache and the positions of
    its rows, and lives as long as the batch; the loop owns the tokens, the random numbers and the
    decision which rows continue; weights and adapters belong to the `Network`.

    Everything has a leading dimension N of adapters, so that a swarm of nodes over one base samples in
    one pass; a single engine is N = 1. Keys and values are stored with their rotation, the prompt at
    columns [0, longest prompt) and generated tokens after it, so a step writes one column for all rows;
    shorter prompts leave masked columns in between.

    Not implemented: paged or shared caches and adding rows later. A round's questions start and end
    together, so one dense block, allocated once, is enough."""

    def __init__(self, matrices: FusedMatrices) -> None:
        self._matrices = matrices
        self._weights = matrices.weights
        self._shape = matrices.weights.shape

    @torch.inference_mode()
    def prefill(self, prompts_NP: Sequence[Sequence[Tokens]], n: int, max_tokens: int) -> torch.Tensor:
        shape, device = self._shape, self._weights.embedding.device
        nodes, prompts = len(prompts_NP), max(map(len, prompts_NP))
        filled = [[*row, *([[0]] * (prompts - len(row)))] for row in prompts_NP]
        lengths_NP = torch.tensor([[len(prompt) for prompt in row] for row in filled])
        self._longest = int(lengths_NP.max())
        self._column = self._longest
        columns = self._longest + max_tokens
        tokens = [[[*p, *([0] * (self._longest - len(p)))] for p in row] for row in filled]
        tokens_NPL = torch.tensor(tokens, device=device)
        turns_D = frequencies(shape.rope, shape.head_dim).to(device)
        self._cos_T, self._sin_T = angles(torch.arange(columns, device=device), turns_D, self._weights.dtype)
        self._cache_L = [
            tuple(
                self._weights.embedding.new_empty(nodes, prompts * n, shape.kv_heads, columns, shape.head_dim)
                for _ in range(2)
            )
            for _ in range(shape.layers)
        ]
        self._position_NR = lengths_NP.to(device).repeat_interleave(n, 1)
        self._mask = self._padding_mask(columns) if bool((lengths_NP != self._longest).any()) else None

        step = max(1, PREFILL_TOKENS // (nodes * self._longest))
        logits = [
            self._read(tokens_NPL[:, first : first + step], lengths_NP[:, first : first + step], first, n)
            for first in range(0, prompts, step)
        ]
        return torch.cat(logits, 1).repeat_interleave(n, 1)

    def _padding_mask(self, columns: int) -> torch.Tensor:
        """Returns an additive mask, minus infinity at columns between a short prompt and the first generated
        token, (N * R, 1, 1, T)."""
        column_T = torch.arange(columns, device=self._position_NR.device)
        hidden = (column_T >= self._position_NR[..., None]) & (column_T < self._longest)
        mask = torch.zeros(hidden.shape, dtype=self._weights.dtype, device=hidden.device)
        return mask.masked_fill_(hidden, -torch.inf).flatten(0, 1)[:, None, None]

    def _read(self, tokens_NPL: torch.Tensor, lengths_NP: torch.Tensor, first: int, n: int) -> torch.Tensor:
        """Runs some prompts, fills their rows of the cache and returns the logits after each, (N, P, V)."""
        shape = self._shape
        nodes, prompts, length = tokens_NPL.shape
        rows = slice(first * n, (first + prompts) * n)

        def attend(index: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            q = q.view(nodes * prompts, length, shape.heads, shape.head_dim).transpose(1, 2)
            k = k.reshape(nodes * prompts, length, shape.kv_heads, shape.head_dim).transpose(1, 2)
            v = v.reshape(nodes * prompts, length, shape.kv_heads, shape.head_dim).transpose(1, 2)
            for cache, new in zip(self._cache_L[index], (k, v), strict=True):
                cache[:, rows, :, :length] = new.reshape(nodes, prompts, *new.shape[1:]).repeat_interleave(n, 1)
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            return out.transpose(1, 2).reshape(nodes, prompts * length, -1)

        cos, sin = (table[:length].repeat(prompts, 1)[None, :, None] for table in (self._cos_T, self._sin_T))
        x_NBd = functional.embedding(tokens_NPL.flatten(1), self._weights.embedding)
        x_NBd = self._layers(x_NBd, cos, sin, attend).view(nodes, prompts, length, -1)
        last = (lengths_NP - 1).to(x_NBd.device)[..., None, None].expand(-1, -1, 1, x_NBd.shape[-1])
        return self._logits(x_NBd.gather(2, last)[:, :, 0])

    @torch.inference_mode()
    def advance(self, tokens_NR: torch.Tensor) -> torch.Tensor:
        shape = self._shape
        nodes, rows = tokens_NR.shape
        column = self._column
        mask = None if self._mask is None else self._mask[..., : column + 1]
        groups = shape.heads // shape.kv_heads

        def attend(index: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            keys, values = self._cache_L[index]
            keys[:, :, :, column] = k
            values[:, :, :, column] = v.view(nodes, rows, shape.kv_heads, shape.head_dim)
            out = functional.scaled_dot_product_attention(
                q.view(nodes * rows, shape.kv_heads, groups, shape.head_dim),
                keys[:, :, :, : column + 1].flatten(0, 1),
                values[:, :, :, : column + 1].flatten(0, 1),
                attn_mask=mask,
            )
            return out.reshape(nodes, rows, shape.heads * shape.head_dim)

        cos, sin = self._cos_T[self._position_NR][:, :, None], self._sin_T[self._position_NR][:, :, None]
        x_NRd = functional.embedding(tokens_NR, self._weights.embedding)
        x_NRd = self._layers(x_NRd, cos, sin, attend)
        self._column += 1
        self._position_NR = self._position_NR + 1
        return self._logits(x_NRd)

    @torch.inference_mode()
    def keep(self, rows_NR: torch.Tensor) -> None:
        nodes, rows = self._position_NR.shape
        offsets = torch.arange(nodes, device=rows_NR.device)[:, None] * rows
        flat = (rows_NR + offsets).flatten()
        used = self._column
        for index, caches in enumerate(self._cache_L):
            kept = []
            for cache in caches:
                new = cache.new_empty(nodes, rows_NR.shape[1], *cache.shape[2:])
                new.flatten(0, 1)[:, :, :used] = cache.flatten(0, 1)[:, :, :used].index_select(0, flat)
                kept.append(new)
            self._cache_L[index] = tuple(kept)
        self._position_NR = self._position_NR.gather(1, rows_NR)
        if self._mask is not None:
            self._mask = self._mask.index_select(0, flat)

    def _layers(
        self,
        x_NBd: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        attend: Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor],
    ) -> torch.Tensor:
        shape = self._shape
        queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        project = self._matrices.project
        for index, layer in enumerate(self._weights.layers):
            normed = functional.rms_norm(x_NBd, (shape.hidden,), layer.attention_norm, shape.eps)
            mixed = project(index, 0, normed).contiguous()
            heads = mixed[..., : queries + keys].view(*mixed.shape[:2], -1, shape.head_dim)
            if layer.query_norm is not None and layer.key_norm is not None:
                q, k = torch.split(heads, [shape.heads, shape.kv_heads], 2)
                q = functional.rms_norm(q, (shape.head_dim,), layer.query_norm, shape.eps)
                k = functional.rms_norm(k, (shape.head_dim,), layer.key_norm, shape.eps)
                heads = torch.cat([q, k], 2)
            q, k = torch.split(rotate_halves(heads, cos, sin), [shape.heads, shape.kv_heads], 2)
            attended = attend(index, q.reshape(*q.shape[:2], queries), k, mixed[..., queries + keys :])
            x_NBd = x_NBd + project(index, 1, attended)
            normed = functional.rms_norm(x_NBd, (shape.hidden,), layer.mlp_norm, shape.eps)
            gate, up = project(index, 2, normed).chunk(2, -1)
            x_NBd = x_NBd + project(index, 3, functional.silu(gate).mul_(up))
        return x_NBd

    def _logits(self, x_NBd: torch.Tensor) -> torch.Tensor:
        normed = functional.rms_norm(x_NBd, (self._shape.hidden,), self._weights.norm, self._shape.eps)
        logits = linear(normed.flatten(0, 1), self._weights.head, None, self._matrices.skinny)
        return logits.contiguous().view(*normed.shape[:2], -1).float()


def read_weights(folder: Folder, shape: Architecture, device: torch.device, dtype: torch.dtype) -> Weights:
    """Reads the whole decoder onto the device. Raises EngineError for missing tensors or wrong shapes."""
    return _Reader(folder, device, dtype).read(shape)


class _Reader:
    """Reads the weight files. They are opened again for each part of the model: a mapped file's pages count as
    this process's memory until it is closed, and would add up to the whole model beside its copy."""

    def __init__(self, folder: Folder, device: torch.device, dtype: torch.dtype) -> None:
        self._folder = folder
        self._model = folder.name
        self._files: dict[str, Any] = {}
        self._device = device
        self._dtype = dtype

    @contextmanager
    def _opened(self) -> Iterator[None]:
        with ExitStack() as stack:
            files = [stack.enter_context(open_weights(file)) for file in self._folder.files]
            self._files = {name: file for file in files for name in file.keys()}  # noqa: SIM118 - not a dict
            try:
                yield
            finally:
                del files
                self._files = {}

    def read(self, shape: Architecture) -> Weights:
        with self._opened():
            embedding = self._fused(["model.embed_tokens"], "weight", [shape.vocabulary], shape.hidden)
            norm = self._vector("model.norm", shape.hidden)
        head = embedding
        with self._opened():
            if not shape.tied and "lm_head.weight" in self._files:
                head = self._fused(["lm_head"], "weight", [shape.vocabulary], shape.hidden)
        layers = []
        for index in range(shape.layers):
            with self._opened():
                layers.append(self._layer(shape, f"model.layers.{index}"))
        return Weights(shape, embedding, tuple(layers), norm, head)

    def _layer(self, shape: Architecture, base: str) -> Layer:
        queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        at, mlp = f"{base}.self_attn", f"{base}.mlp"
        normed = f"{at}.q_norm.weight" in self._files
        return Layer(
            attention_norm=self._vector(f"{base}.input_layernorm", shape.hidden),
            qkv=self._linear([f"{at}.{p}_proj" for p in "qkv"], [queries, keys, keys], shape.hidden),
            query_norm=self._vector(f"{at}.q_norm", shape.head_dim) if normed else None,
            key_norm=self._vector(f"{at}.k_norm", shape.head_dim) if normed else None,
            out=self._linear([f"{at}.o_proj"], [shape.hidden], queries),
            mlp_norm=self._vector(f"{base}.post_attention_layernorm", shape.hidden),
            gate_up=self._linear([f"{mlp}.gate_proj", f"{mlp}.up_proj"], [shape.inner] * 2, shape.hidden),
            down=self._linear([f"{mlp}.down_proj"], [shape.hidden], shape.inner),
        )

    def _linear(self, names: Sequence[str], widths_out: Sequence[int], width_in: int) -> Linear:
        """Reads a linear layer, with a bias if the files have one: Qwen2 has it on q, k, v, Llama depending on
        its config, Qwen3 nowhere."""
        has_bias = f"{names[0]}.bias" in self._files
        return Linear(
            self._fused(names, "weight", widths_out, width_in),
            self._fused(names, "bias", widths_out) if has_bias else None,
        )

    def _vector(self, name: str, length: int) -> torch.Tensor:
        return self._fused([name], "weight", [length])

    def _fused(self, names: Sequence[str], kind: str, rows: Sequence[int], *tail: int) -> torch.Tensor:
        """Reads several layers' tensors stacked by rows."""
        out = torch.empty(sum(rows), *tail, device=self._device, dtype=self._dtype)
        for name, part in zip(names, torch.split(out, list(rows)), strict=True):
            full = f"{name}.{kind}"
            if full not in self._files:
                self._refuse(f"lacks the weights {full}")
            tensor = self._files[full].get_tensor(full)
            if tensor.shape != part.shape or not tensor.is_floating_point():
                self._refuse(f"has {full} in another shape than its config.json says")
            part.copy_(tensor)
        return out

    def _refuse(self, what: str) -> NoReturn:
        raise EngineError(f"{self._model} {what}: download the model again.")


KEPT_SHARE = 0.25
"""Maximum memory of the states between the halves of the layers, as a share of the weights' size."""


MAX_NODES = 16
"""Maximum adapters that sample together if none needs a copy of the weights."""


MIN_SHARED = 8
"""Minimum tokens of a common prefix of several prompts that is computed once. Not used for tiny models, which
compute it faster than it is found."""


class NativeNetwork:
    """The Network of Qwen2, Qwen3 and Llama models, without transformers."""

    def __init__(self, folder: Folder, shape: Architecture, device: torch.device, dtype: torch.dtype) -> None:
        self.vocabulary = shape.vocabulary
        self.context = shape.context
        self.device = device
        self.dtype = dtype
        self.projections: Sequence[Projection] = decoder.projections(shape)
        self._shape = shape
        self._weights: Weights = read_weights(folder, shape, device, dtype)
        self._merged: MergedWeights | None = None
        parameters = sum(tensor.numel() for tensor in self._weights.matrices())
        self.weight_bytes = parameters * dtype.itemsize
        on_cpu = device.type == "cpu"
        self._merges = merges(device, parameters)
        self._lower = LowerStates(int(self.weight_bytes * KEPT_SHARE))
        self._least_shared = MIN_SHARED if parameters >= ONE_THREAD_PARAMETERS else None
        self._skinny = (
            on_cpu and dtype == torch.float32 and parameters >= ONE_THREAD_PARAMETERS and skinny_is_faster()
        )

    def shares_prompts(self, checkpointing: bool) -> bool:
        return True

    def states(
        self,
        adapter: Adapter,
        sequences_S: Sequence[tuple[Tokens, Tokens]],
        checkpointing: bool,
        upper: bool = False,
    ) -> States:
        layout, weights = pack(sequences_S, self.device, self._least_shared), self._weights
        between_Md = self._between(adapter, layout, sequences_S) if upper else None
        hidden_Cd = decoder.completion_hidden_states(weights, adapter, layout, checkpointing, between_Md)
        return States(hidden_Cd, weights.head)

    def _between(
        self, adapter: Adapter, layout: Layout, sequences_S: Sequence[tuple[Tokens, Tokens]]
    ) -> torch.Tensor | None:
        """Returns the states between the halves of the layers; None if the adapter changes the lower one."""
        if not adds_nothing(adapter, decoder.half(self._shape) * decoder.PROJECTIONS):
            self._lower.clear()
            return None
        found = self._lower.find(layout, sequences_S)
        if found is None:
            found = decoder.lower_states(self._weights, adapter, layout)
            self._lower.keep(layout, sequences_S, found)
        return found

    def rollout(self, adapters_N: Sequence[Adapter]) -> Rollout:
        if not self._merges:
            return DecoderRollout(UnmergedWeights(self._weights, adapters_N, self._skinny))
        if self._merged is None or self._merged.nodes != len(adapters_N):
            self._merged = None  # frees the old copies before the new ones are made
            self._merged = MergedWeights(self._weights, len(adapters_N), self._skinny)
        self._merged.refresh(adapters_N)
        return DecoderRollout(self._merged)

    def plain_rollout(self) -> Rollout:
        return DecoderRollout(PlainWeights(self._weights, self._skinny))

    def row_bytes(self, tokens: int) -> int:
        cache = (
            2 * self._shape.layers * self._shape.kv_heads * self._shape.head_dim * tokens * self.dtype.itemsize
        )
        return cache + 12 * self.vocabulary

    def token_bytes(self, checkpointing: bool) -> int:
        """Returns the bytes kept per token: of each layer its two inputs, queries, keys and values before and
        after attention, gate and up; and about the same again for the gradients of the layer in its backward
        pass."""
        shape = self._shape
        heads = (3 * shape.heads + 4 * shape.kv_heads) * shape.head_dim
        layer = 2 * shape.hidden + heads + 2 * shape.inner
        kept = shape.layers * (shape.hidden if checkpointing else layer) + 2 * layer
        return kept * self.dtype.itemsize

    def nodes_per_pass(self, free_bytes: int) -> int:
        if not self._merges:
            return MAX_NODES
        matrices = [linear.weight for layer in self._weights.layers for linear in layer.linears]
        return max(1, int(free_bytes * 0.3) // sum(matrix.numel() * self.dtype.itemsize for matrix in matrices))
