"""Reading a decoder's weights, each matrix once and straight into its place among the fused ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn

import torch

from engines.contract import EngineError
from engines.models.architecture import Architecture
from engines.models.folder import Folder, open_weights
from engines.torch_lora.network.decoder import Layer, Linear, Weights


def read_weights(folder: Folder, shape: Architecture, device: torch.device, dtype: torch.dtype) -> Weights:
    """The whole decoder on the device. Raises EngineError where tensors lack or have other shapes."""
    return _Reader(folder, device, dtype).read(shape)


class _Reader:
    """Opens the files again for each part of the model: a mapped file's pages count as this process's memory
    until it is closed, and would otherwise add up to the whole model beside its copy."""

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
        """Bias where the files have one: Qwen2 has it on q, k, v, Llama by its config, Qwen3 nowhere."""
        has_bias = f"{names[0]}.bias" in self._files
        return Linear(
            self._fused(names, "weight", widths_out, width_in),
            self._fused(names, "bias", widths_out) if has_bias else None,
        )

    def _vector(self, name: str, length: int) -> torch.Tensor:
        return self._fused([name], "weight", [length])

    def _fused(self, names: Sequence[str], kind: str, rows: Sequence[int], *tail: int) -> torch.Tensor:
        """Several layers' tensors stacked by rows."""
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
