"""One LoRA adapter and its AdamW, each one flat fp32 array in the order and layout of PEFT's files.

Splitting a flat array is one operation forward and one backward (the gradients are concatenated), so norm,
clipping, finite check, optimiser and files take a few operations however many layers there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.optimizers import AdamW

from engines.models import lora
from engines.models.lora import OptimizerState

BETAS, EPSILON = (0.9, 0.95), 1e-8
ALPHA_OVER_RANK = 2.0
"""LoRA scale alpha / rank. Equal in all engines (engines.torch_lora.network.adapter), like the AdamW constants,
so that learning rates and checkpoints carry over."""

_FLAT = "values"


@dataclass(frozen=True)
class AdaptedLayer:
    """A linear layer that LoRA adapts: its name in the model, input and output width."""

    name: str
    width_in: int
    width_out: int


class Adapter:
    """Trainable state over a frozen base. `version` counts changes of the values, `steps` optimiser steps. A is
    uniform within 1 / sqrt(in) and B is zero (PEFT's own initialisation), drawn by numpy from `seed`."""

    def __init__(self, places: Sequence[AdaptedLayer], rank: int, seed: int) -> None:
        self.places = tuple(places)
        self.rank = rank
        self.scale = ALPHA_OVER_RANK
        self.version = 0
        self._shapes = [s for p in self.places for s in ((rank, p.width_in), (p.width_out, rank))]
        self._ends = list(accumulate(rows * columns for rows, columns in self._shapes))
        random = np.random.default_rng(seed & (2**64 - 1))
        parts = []
        for place in self.places:
            bound = 1 / math.sqrt(place.width_in)
            parts.append(random.uniform(-bound, bound, rank * place.width_in).astype(np.float32))
            parts.append(np.zeros(place.width_out * rank, np.float32))
        self.values = mx.array(np.concatenate(parts))
        self._optimizer = AdamW(0.0, betas=list(BETAS), eps=EPSILON, weight_decay=0.0, bias_correction=True)
        self._optimizer.init({_FLAT: self.values})
        mx.eval(self.values, self._optimizer.state)

    @property
    def steps(self) -> int:
        return int(self._optimizer.step.item())

    @property
    def moments(self) -> tuple[mx.array, mx.array]:
        """AdamW's first and second moments, flat."""
        state = self._optimizer.state[_FLAT]
        return state["m"], state["v"]

    def matrices(self, values: mx.array) -> list[tuple[mx.array, mx.array]]:
        """Returns A (rank, in) and B (out, rank) of each layer as differentiable views of the flat `values`."""
        parts = mx.split(values, self._ends[:-1])
        shaped = [part.reshape(shape) for part, shape in zip(parts, self._shapes, strict=True)]
        return list(zip(shaped[::2], shaped[1::2], strict=True))

    def update(self, gradient: mx.array, learning_rate: float) -> None:
        """Takes one AdamW step without weight decay (Kingma and Ba 2015, algorithm 1)."""
        self._optimizer.learning_rate = learning_rate
        self.values = self._optimizer.apply_gradients({_FLAT: gradient}, {_FLAT: self.values})[_FLAT]
        mx.eval(self.values, self._optimizer.state)
        self.version += 1

    def save(self, folder: Path, base: str, model: str) -> None:
        """Writes adapter and optimiser state, flushed to disk. Raises EngineError if that fails."""
        state = OptimizerState(steps=self.steps, rank=self.rank, base=base, model=model)
        values, first, second = (self._named(flat) for flat in (self.values, *self.moments))
        lora.save(folder, state, int(self.scale * self.rank), values, first, second)

    def load(self, folder: Path, base: str) -> None:
        """Loads saved state. Raises AdapterError, before anything changes, if it belongs to another adapter."""
        shapes = dict(zip(self._names(), self._shapes, strict=True))
        state, *arrays = lora.load(folder, base, self.rank, shapes)
        values, first, second = (
            mx.array(np.concatenate([found[name].reshape(-1) for name in shapes])) for found in arrays
        )
        self.values = values
        self._optimizer.state = {
            **self._optimizer.state,
            "step": mx.array(state.steps, mx.uint64),
            _FLAT: {"m": first, "v": second},
        }
        mx.eval(self.values, self._optimizer.state)
        self.version += 1

    def _names(self) -> list[str]:
        return [f"base_model.model.{p.name}.lora_{side}.weight" for p in self.places for side in "AB"]

    def _named(self, flat: mx.array) -> dict[str, Any]:
        parts = np.split(np.array(flat), self._ends[:-1])
        return {
            name: part.reshape(shape)
            for name, part, shape in zip(self._names(), parts, self._shapes, strict=True)
        }
