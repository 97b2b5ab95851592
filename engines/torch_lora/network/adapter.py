"""One LoRA adapter and its AdamW, all in flat fp32 buffers.

Values, gradients and both moments are one tensor each, and every layer's A and B are views into them: norm,
clipping, finite check and optimiser take a few operations however many layers there are. torch.optim would also
add 1.5 s to the start of the process, because it imports torch's compiler.

Its files are those that every engine shares (engines.models.lora)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from engines.models import lora
from engines.models.lora import ADAPTER, ADAPTER_CONFIG, OPTIMIZER, OPTIMIZER_STATE, OptimizerState
from engines.torch_lora.network.functions import add_lora, parts

BETA_1, BETA_2, EPSILON = 0.9, 0.95, 1e-8
ALPHA_OVER_RANK = 2.0
"""LoRA's output is scaled by alpha / rank = 2 in every engine, so that learning rates carry over."""


@dataclass(frozen=True)
class Projection:
    """Linear layers that share one input: their names in the model, input width and output widths."""

    names: tuple[str, ...]
    width_in: int
    widths_out: tuple[int, ...]


@dataclass(frozen=True)
class ProjectionPair:
    """A (layers * rank, in) and B (sum of out, rank) of one projection: leaf views of the flat buffers."""

    a: torch.Tensor
    b: torch.Tensor


class Adapter:
    """Trainable state over a frozen base. `version` counts changes of the values, `steps` optimiser steps. A is
    uniform within 1 / sqrt(in) and B is zero (PEFT's own initialisation), drawn on the processor from `seed`,
    so that it is the same on every device."""

    def __init__(self, projections: Sequence[Projection], rank: int, seed: int, device: torch.device) -> None:
        self.projections = tuple(projections)
        self.rank = rank
        self.scale = ALPHA_OVER_RANK
        self.steps = 0
        self.version = 0
        self._shapes = [shape for p in self.projections for shape in _shapes(p, rank)]
        self.values = torch.zeros(sum(math.prod(shape) for shape in self._shapes), device=device)
        self.gradients = torch.zeros_like(self.values)
        self.moments_1 = torch.zeros_like(self.values)
        self.moments_2 = torch.zeros_like(self.values)
        values, gradients = self._views(self.values), self._views(self.gradients)
        for value, gradient in zip(values, gradients, strict=True):
            value.requires_grad_()
            value.grad = gradient  # autograd adds into this view, so `gradients` is always the whole gradient
        self.pairs = tuple(ProjectionPair(a, b) for a, b in zip(values[::2], values[1::2], strict=True))
        generator = torch.Generator().manual_seed(fold_seed(seed))
        with torch.no_grad():
            for projection, pair in zip(self.projections, self.pairs, strict=True):
                bound = 1 / math.sqrt(projection.width_in)
                pair.a.copy_(torch.empty(pair.a.shape).uniform_(-bound, bound, generator=generator))

    def _views(self, flat: torch.Tensor) -> list[torch.Tensor]:
        views, start = [], 0
        for rows, columns in self._shapes:
            views.append(flat[start : start + rows * columns].view(rows, columns))
            start += rows * columns
        return views

    def named(self, flat: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
        """Yields the views of a flat buffer under PEFT's names, layer by layer."""
        views = self._views(flat)
        for index, projection in enumerate(self.projections):
            a_parts = torch.split(views[2 * index], self.rank)
            b_parts = torch.split(views[2 * index + 1], list(projection.widths_out))
            for name, a, b in zip(projection.names, a_parts, b_parts, strict=True):
                yield f"base_model.model.{name}.lora_A.weight", a
                yield f"base_model.model.{name}.lora_B.weight", b

    def deltas(self, index: int) -> Iterator[tuple[slice, torch.Tensor]]:
        """Yields the output rows and `scale * B A`, (out, in) fp32, of each layer of a projection."""
        pair = self.pairs[index]
        for rows, ranks in parts(self.projections[index].widths_out, self.rank):
            yield rows, (pair.b[rows] @ pair.a[ranks]).mul_(self.scale)

    def add_to(self, index: int, x_Bi: torch.Tensor, out_Bo: torch.Tensor) -> None:
        """Adds a projection's `scale * B A x` to the base's output, without computing `B A`."""
        pair = self.pairs[index]
        low = functional.linear(x_Bi.to(pair.a.dtype), pair.a)
        add_lora(out_Bo, low, pair.b, self.scale, self.projections[index].widths_out)

    def clear_gradients(self) -> None:
        self.gradients.zero_()

    @torch.no_grad()
    def update(self, learning_rate: float, norm: float, limit: float = 1.0) -> None:
        """Takes one AdamW step without weight decay on the gathered gradient, which is scaled down if its norm
        exceeds `limit` (Kingma and Ba 2015, algorithm 1). `norm` is the gradient's norm, already known to be
        finite."""
        gradient = self.gradients if norm <= limit else self.gradients * (limit / norm)
        self.steps += 1
        self.moments_1.lerp_(gradient, 1 - BETA_1)
        self.moments_2.mul_(BETA_2).addcmul_(gradient, gradient, value=1 - BETA_2)
        spread = (self.moments_2 / (1 - BETA_2**self.steps)).sqrt_().add_(EPSILON)
        self.values.addcdiv_(self.moments_1, spread, value=-learning_rate / (1 - BETA_1**self.steps))
        self.version += 1

    @torch.no_grad()
    def replace(
        self, values: torch.Tensor, moments_1: torch.Tensor, moments_2: torch.Tensor, steps: int
    ) -> None:
        """Copies loaded state into the buffers in place, so that all views stay valid."""
        self.values.copy_(values)
        self.moments_1.copy_(moments_1)
        self.moments_2.copy_(moments_2)
        self.clear_gradients()
        self.steps = steps
        self.version += 1


def _shapes(projection: Projection, rank: int) -> list[tuple[int, int]]:
    return [(len(projection.names) * rank, projection.width_in), (sum(projection.widths_out), rank)]


def fold_seed(seed: int) -> int:
    """Folds a seed of any size to 32 bits, because torch's generator silently ignores all bits above them.

    >>> fold_seed(5), fold_seed(5 + 2**40) == fold_seed(5)
    (5, False)
    """
    seed &= 2**64 - 1
    return (seed ^ (seed >> 32)) & 0xFFFFFFFF


__all__ = ["ADAPTER", "ADAPTER_CONFIG", "OPTIMIZER", "OPTIMIZER_STATE", "OptimizerState", "load", "save"]


def save(adapter: Adapter, folder: Path, base: str, model: str) -> None:
    """Writes adapter and optimiser state, flushed to disk. Raises EngineError if that fails."""
    state = OptimizerState(steps=adapter.steps, rank=adapter.rank, base=base, model=model)
    values, first, second = (
        _arrays(adapter, flat) for flat in (adapter.values, adapter.moments_1, adapter.moments_2)
    )
    lora.save(folder, state, int(adapter.scale * adapter.rank), values, first, second)


def load(adapter: Adapter, folder: Path, base: str) -> None:
    """Loads saved state. Raises AdapterError, before anything changes, if it belongs to another adapter."""
    shapes = {name: tuple(view.shape) for name, view in adapter.named(adapter.values)}
    state, *arrays = lora.load(folder, base, adapter.rank, shapes)
    values, first, second = (_flat(adapter, found) for found in arrays)
    adapter.replace(values, first, second, state.steps)


def _arrays(adapter: Adapter, flat: torch.Tensor) -> dict[str, Any]:
    on_cpu = flat.detach().cpu()
    return {name: view.numpy() for name, view in adapter.named(on_cpu)}


def _flat(adapter: Adapter, arrays: Any) -> torch.Tensor:
    flat = torch.empty(adapter.values.shape)
    for name, view in adapter.named(flat):
        view.copy_(torch.from_numpy(arrays[name]))
    return flat
