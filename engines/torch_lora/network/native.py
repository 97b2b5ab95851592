"""The Network of our own decoder, and reading its weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn

import torch

from engines.contract import EngineError
from engines.models.folder import Architecture, Folder, open_weights
from engines.torch_lora.network import decoder
from engines.torch_lora.network.adapter import Adapter, Projection
from engines.torch_lora.network.decoder import Layer, Linear, Weights
from engines.torch_lora.network.device import TINY, skinny_is_faster
from engines.torch_lora.network.layout import Tokens, pack
from engines.torch_lora.network.logprobs import States
from engines.torch_lora.network.matrices import BesideWeights, MergedWeights, PlainWeights, merges
from engines.torch_lora.network.network import Rollout
from engines.torch_lora.network.rollout import DecoderRollout

# Reading a decoder's weights, each matrix once and straight into its place among the fused ones.


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
        self._least_shared = MIN_SHARED if parameters >= TINY else None
        self._skinny = on_cpu and dtype == torch.float32 and parameters >= TINY and skinny_is_faster()

    def shares_prompts(self, checkpointing: bool) -> bool:
        return True

    def states(
        self, adapter: Adapter, sequences_S: Sequence[tuple[Tokens, Tokens]], checkpointing: bool
    ) -> States:
        layout = pack(sequences_S, self.device, self._least_shared)
        return States(decoder.hidden_states(self._weights, adapter, layout, checkpointing), self._weights.head)

    def rollout(self, adapters_N: Sequence[Adapter]) -> Rollout:
        if not self._merges:
            return DecoderRollout(BesideWeights(self._weights, adapters_N, self._skinny))
        if self._merged is None or self._merged.nodes != len(adapters_N):
            self._merged = None  # frees the old copies before the new ones are made
            self._merged = MergedWeights(self._weights, len(adapters_N), self._skinny)
        self._merged.refresh(adapters_N)
        return DecoderRollout(self._merged)

    def plain_rollout(self) -> Rollout:
        return DecoderRollout(PlainWeights(self._weights, self._skinny))

    @torch.inference_mode()
    def merged(self, adapter: Adapter) -> Iterator[tuple[str, torch.Tensor]]:
        """Yields each adapted layer's name and `W + scale * B A`, (out, in) fp32, for another program."""
        linears = [linear for layer in self._weights.layers for linear in layer.linears]
        for index, linear in enumerate(linears):
            parts = zip(self.projections[index].names, adapter.deltas(index), strict=True)
            for name, (rows, delta) in parts:
                yield name, delta.add_(linear.weight[rows])

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
