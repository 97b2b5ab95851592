"""The Network of our own decoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from engines.models.architecture import Architecture
from engines.models.folder import Folder
from engines.torch_lora.network import decoder
from engines.torch_lora.network.adapter import Adapter, Projection
from engines.torch_lora.network.decoder import Weights
from engines.torch_lora.network.device import TINY, skinny_is_faster
from engines.torch_lora.network.layout import Tokens, pack
from engines.torch_lora.network.logprobs import States
from engines.torch_lora.network.matrices import BesideWeights, MergedWeights, PlainWeights, merges
from engines.torch_lora.network.network import Rollout
from engines.torch_lora.network.rollout import DecoderRollout
from engines.torch_lora.network.weights import read_weights

MOST_NODES = 16
"""Adapters that sample together where none needs a copy of the weights."""


class NativeNetwork:
    """Qwen2, Qwen3 and Llama, without transformers."""

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
        self._skinny = on_cpu and dtype == torch.float32 and parameters >= TINY and skinny_is_faster()

    def states(
        self, adapter: Adapter, sequences_S: Sequence[tuple[Tokens, Tokens]], checkpointing: bool
    ) -> States:
        layout = pack(sequences_S, self.device)
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
        """Each adapted layer's name and `W + scale * B A`, (out, in) fp32, for another program."""
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
        """Of a layer: its two inputs, queries, keys and values before and after attention, gate and up; most
        of that again for the gradients of the one that is going backward."""
        shape = self._shape
        heads = (3 * shape.heads + 4 * shape.kv_heads) * shape.head_dim
        layer = 2 * shape.hidden + heads + 2 * shape.inner
        kept = shape.layers * (shape.hidden if checkpointing else layer) + 2 * layer
        return kept * self.dtype.itemsize

    def nodes_per_pass(self, free_bytes: int) -> int:
        if not self._merges:
            return MOST_NODES
        matrices = [linear.weight for layer in self._weights.layers for linear in layer.linears]
        return max(1, int(free_bytes * 0.3) // sum(matrix.numel() * self.dtype.itemsize for matrix in matrices))
