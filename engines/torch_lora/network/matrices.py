"""The matrices used in sampling: the base's own, with adapters merged into a copy or applied separately.

Merging costs a copy of the weights and a pass over it after every step, and nothing per token: best for small
models, whose many small products would cost more, and for GPUs. On a processor a large model reads its weights
for every token anyway, and a separate adapter adds two per cent to that.

All functions take and return (N, B, width): B rows of each of N adapters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch.nn import functional

from engines.facts import LARGE_PARAMETERS
from engines.torch_lora.network.adapter import Adapter
from engines.torch_lora.network.decoder import PROJECTIONS, Weights
from engines.torch_lora.network.device import skinny_linear
from engines.torch_lora.network.functions import parts

FEWEST_ROWS, MAX_ROWS = 3, 48
"""Range of row counts in which `skinny_linear` is faster."""

FEW_ROWS = 16
"""Maximum rows per node at which a processor uses one product with the base for all nodes, and thin ones for
the adapters. Eight nodes of the starter at 2, 8 and 16 rows: 1.5, 3.1 and 5.5 ms per token against 5.3, 14.1
and 14.5 ms with eight merged copies, which no cache holds; at 32 rows the two are equal."""


def merges(device: torch.device, parameters: int) -> bool:
    """Returns whether adapters are merged into a copy of the weights for sampling."""
    return device.type != "cpu" or parameters < LARGE_PARAMETERS


class FusedMatrices(Protocol):
    """A decoder's fused matrices under N adapters. `skinny`: use `skinny_linear` for few rows."""

    weights: Weights
    skinny: bool

    def project(self, layer: int, place: int, x_NBi: torch.Tensor) -> torch.Tensor:
        """Multiplies by matrix `place` (qkv, o, gate-up, down) of a layer and adds its bias."""
        ...


class MergedWeights:
    """`W + scale * B A` of all fused matrices for N adapters: per layer qkv, o, gate-up, down, (N, out, in)."""

    def __init__(self, weights: Weights, nodes: int, skinny: bool = False) -> None:
        self.weights = weights
        self.nodes = nodes
        self.skinny = skinny
        self._linears_L = [
            tuple(linear.weight.new_empty(nodes, *linear.weight.shape) for linear in layer.linears)
            for layer in weights.layers
        ]
        self._thin_L = (
            [tuple(_Thin(linear.weight, nodes) for linear in layer.linears) for layer in weights.layers]
            if nodes > 1 and weights.embedding.device.type == "cpu" and weights.dtype == torch.float32
            else None
        )
        self._holds: list[tuple[Adapter, int] | None] = [None] * nodes

    @torch.inference_mode()
    def refresh(self, adapters_N: Sequence[Adapter]) -> None:
        """Merges the adapters that changed since the last call: in fp32, then cast to the base's format."""
        for node, adapter in enumerate(adapters_N):
            held = self._holds[node]
            if held is not None and held[0] is adapter and held[1] == adapter.version:
                continue
            for index, layer in enumerate(self.weights.layers):
                first = index * PROJECTIONS
                for place, linear in enumerate(layer.linears):
                    target = self._linears_L[index][place][node]
                    for rows, delta in adapter.deltas(first + place):
                        target[rows] = delta.add_(linear.weight[rows])
                    if self._thin_L is not None:
                        self._thin_L[index][place].take(node, adapter, first + place)
            self._holds[node] = (adapter, adapter.version)

    def project(self, layer: int, place: int, x_NBi: torch.Tensor) -> torch.Tensor:
        weight_Noi = self._linears_L[layer][place]
        bias = self.weights.layers[layer].linears[place].bias
        if x_NBi.shape[0] == 1:
            return linear(x_NBi[0], weight_Noi[0], bias, self.skinny)[None]
        if self._thin_L is not None and x_NBi.shape[1] <= FEW_ROWS:
            matrix = self.weights.layers[layer].linears[place].weight
            out = linear(x_NBi.flatten(0, 1), matrix, bias, self.skinny).view(*x_NBi.shape[:2], -1)
            return self._thin_L[layer][place].add_to(x_NBi, out)
        out = torch.bmm(x_NBi, weight_Noi.transpose(1, 2))
        return out if bias is None else out.add_(bias)


class _Thin:
    """The adapters of N nodes for one fused matrix: A^T (N, in, ranks) and scale * B^T (N, ranks, out). Layers
    that share the input have zeros outside their own ranks and outputs."""

    def __init__(self, weight: torch.Tensor, nodes: int) -> None:
        self._nodes, (self._out, self._in) = nodes, weight.shape
        self._a_Nir = self._b_Nro = weight.new_empty(0)

    def take(self, node: int, adapter: Adapter, index: int) -> None:
        pair = adapter.pairs[index]
        if not self._a_Nir.numel():
            self._a_Nir = pair.a.new_zeros(self._nodes, self._in, pair.a.shape[0])
            self._b_Nro = pair.b.new_zeros(self._nodes, pair.a.shape[0], self._out)
        self._a_Nir[node] = pair.a.t()
        for columns, ranks in parts(adapter.projections[index].widths_out, adapter.rank):
            self._b_Nro[node, ranks, columns] = pair.b[columns].t() * adapter.scale

    def add_to(self, x_NBi: torch.Tensor, out_NBo: torch.Tensor) -> torch.Tensor:
        return torch.baddbmm(out_NBo, torch.bmm(x_NBi, self._a_Nir), self._b_Nro)


class PlainWeights:
    """The base's matrices without an adapter."""

    def __init__(self, weights: Weights, skinny: bool = False) -> None:
        self.weights = weights
        self.skinny = skinny

    def project(self, layer: int, place: int, x_NBi: torch.Tensor) -> torch.Tensor:
        matrix = self.weights.layers[layer].linears[place]
        out = linear(x_NBi.flatten(0, 1), matrix.weight, matrix.bias, self.skinny)
        return out.view(*x_NBi.shape[:2], -1)


class UnmergedWeights:
    """Multiplies all rows at once by the base's matrices, then each adapter's own rows by its A and B, in
    fp32."""

    def __init__(self, weights: Weights, adapters_N: Sequence[Adapter], skinny: bool = False) -> None:
        self.weights = weights
        self.skinny = skinny
        self._adapters_N = adapters_N

    def project(self, layer: int, place: int, x_NBi: torch.Tensor) -> torch.Tensor:
        matrix = self.weights.layers[layer].linears[place]
        out = linear(x_NBi.flatten(0, 1), matrix.weight, matrix.bias, self.skinny).view(*x_NBi.shape[:2], -1)
        for node, adapter in enumerate(self._adapters_N):
            adapter.add_to(layer * PROJECTIONS + place, x_NBi[node], out[node])
        return out


def linear(x_Bi: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, skinny: bool) -> torch.Tensor:
    """Returns `x W^T + bias`, through `skinny_linear` for few rows if that is faster."""
    if not skinny or not FEWEST_ROWS <= x_Bi.shape[0] <= MAX_ROWS:
        return functional.linear(x_Bi, weight, bias)
    out = skinny_linear(x_Bi, weight)
    return out if bias is None else out.add_(bias)
