"""The Network of every other architecture: transformers' own forward pass with peft's LoRA layers.

Slower to start and to run than our decoder, but right for whatever AutoModelForCausalLM knows. The adapter's
flat buffers stay the truth: peft's parameters are pointed at them before each use.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch

from engines.contract import EngineError
from engines.models.folder import Folder
from engines.torch_lora.network.adapter import ALPHA_OVER_RANK, Adapter, Projection
from engines.torch_lora.network.layout import Tokens
from engines.torch_lora.network.logprobs import States
from engines.torch_lora.network.network import Rollout


class TransformersNetwork:
    """One model of transformers with one set of LoRA layers, shared by all adapters in turn."""

    def __init__(self, folder: Folder, device: torch.device, dtype: torch.dtype, rank: int) -> None:
        model = _load(folder, dtype)
        self.device = device
        self.dtype = dtype
        config: Any = model.config.get_text_config()
        self.vocabulary = int(config.vocab_size)
        self.context = _context(config)
        self._width = int(getattr(config, "hidden_size", 1024))
        self._depth = int(getattr(config, "num_hidden_layers", 24))
        self._model: Any = _with_lora(model, rank, folder.name).to(device)
        self._model.eval()
        self.weight_bytes = sum(p.numel() * p.element_size() for p in self._model.parameters())
        self._layers = [
            (name.removeprefix("base_model.model."), module)
            for name, module in self._model.named_modules()
            if hasattr(module, "lora_A") and "default" in module.lora_A
        ]
        self.projections: Sequence[Projection] = [
            Projection(
                (name,), module.lora_A["default"].weight.shape[1], (module.lora_B["default"].weight.shape[0],)
            )
            for name, module in self._layers
        ]

    def bind(self, adapter: Adapter) -> Any:
        """The model under this adapter: parameters and their gradients become views of its buffers."""
        for (_, module), pair in zip(self._layers, adapter.pairs, strict=True):
            for parameter, leaf in (
                (module.lora_A["default"].weight, pair.a),
                (module.lora_B["default"].weight, pair.b),
            ):
                parameter.data = leaf.detach()
                parameter.grad = leaf.grad
        return self._model

    def states(
        self, adapter: Adapter, sequences_S: Sequence[tuple[Tokens, Tokens]], checkpointing: bool
    ) -> States:
        rows = [[*prompt, *completion] for prompt, completion in sequences_S]
        longest = max(map(len, rows))
        tokens = torch.tensor([[*row, *([0] * (longest - len(row)))] for row in rows], device=self.device)
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=self.device)
        predicting = [
            (index, len(prompt) + position - 1)
            for index, (prompt, completion) in enumerate(sequences_S)
            for position in range(len(completion))
        ]
        self._recompute(checkpointing)
        logits = self.bind(adapter)(input_ids=tokens, attention_mask=mask, use_cache=False).logits
        row_C, column_C = torch.tensor(predicting, device=self.device).unbind(1)
        return States(logits[row_C, column_C], None)

    def _recompute(self, wanted: bool) -> None:
        """Gradient checkpointing, which transformers does in training mode only; dropout is zero by then."""
        if wanted and not self._model.training:
            self._model.gradient_checkpointing_enable({"use_reentrant": False})
            self._model.train()
        elif not wanted and self._model.training:
            self._model.gradient_checkpointing_disable()
            self._model.eval()

    def rollout(self, adapters_N: Sequence[Adapter]) -> Rollout:
        if len(adapters_N) != 1:
            raise ValueError("transformers runs one adapter at a time")
        self._recompute(False)
        return TransformersRollout(self.bind(adapters_N[0]), self.device)

    def plain_rollout(self) -> Rollout:
        self._recompute(False)
        return TransformersRollout(self._model, self.device, plain=True)

    def row_bytes(self, tokens: int) -> int:
        return 2 * self._depth * self._width * tokens * self.dtype.itemsize + 12 * self.vocabulary

    def token_bytes(self, checkpointing: bool) -> int:
        kept = self._width * (self._depth + 30) if checkpointing else self._width * self._depth * 30
        return kept * self.dtype.itemsize + 12 * self.vocabulary

    def nodes_per_pass(self, free_bytes: int) -> int:
        return 1


class TransformersRollout:
    """The Rollout over a DynamicCache: prompts padded on the left, one adapter (none when `plain`)."""

    def __init__(self, model: Any, device: torch.device, plain: bool = False) -> None:
        self._model = model
        self._adapted = model.disable_adapter if plain else nullcontext
        self._device = device
        self._cache: Any = None
        self._positioned = "position_ids" in inspect.signature(model.get_base_model().forward).parameters

    @torch.inference_mode()
    def prefill(self, prompts_NP: Sequence[Sequence[Tokens]], n: int, max_tokens: int) -> torch.Tensor:
        prompts = prompts_NP[0]
        longest = max(map(len, prompts))
        tokens = [[*([0] * (longest - len(prompt))), *prompt] for prompt in prompts]
        mask = [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        self._mask = torch.tensor(mask, device=self._device)
        positions = (self._mask.cumsum(1) - 1).clamp_(min=0)
        logits = self._run(torch.tensor(tokens, device=self._device), positions)
        if not hasattr(self._cache, "batch_repeat_interleave"):
            raise EngineError(
                "This model's architecture can't answer several times from one prompt: choose another."
            )
        self._cache.batch_repeat_interleave(n)
        self._mask = self._mask.repeat_interleave(n, 0)
        return logits.repeat_interleave(n, 0)[None]

    @torch.inference_mode()
    def advance(self, tokens_NR: torch.Tensor) -> torch.Tensor:
        self._mask = torch.cat([self._mask, self._mask.new_ones(self._mask.shape[0], 1)], 1)
        return self._run(tokens_NR[0][:, None], self._mask.sum(1, keepdim=True) - 1)[None]

    @torch.inference_mode()
    def keep(self, rows_NR: torch.Tensor) -> None:
        self._cache.batch_select_indices(rows_NR[0])
        self._mask = self._mask[rows_NR[0]]

    def _run(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        place = {"position_ids": positions} if self._positioned else {}
        with self._adapted():
            out = self._model(
                input_ids=tokens,
                attention_mask=self._mask,
                past_key_values=self._cache,
                use_cache=True,
                **place,
            )
        self._cache = out.past_key_values
        logits: torch.Tensor = out.logits[:, -1].float()
        return logits


def _context(config: Any) -> int:
    """Longest sequence, under whatever name the architecture has for it."""
    for name in ("max_position_embeddings", "n_positions", "max_seq_len"):
        if isinstance(length := getattr(config, name, None), int):
            return length
    return 2048


def _load(folder: Folder, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    family = str(folder.config.get("model_type", "unknown"))[:40]
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder.path, local_files_only=True, trust_remote_code=False, use_safetensors=True, dtype=dtype
        )
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        raise EngineError(
            f"{folder.name} can't be opened: its architecture {family!r} is unknown or its files are damaged: "
            "choose a Qwen2, Qwen3 or Llama model."
        ) from error
    module: Any
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = 0.0
    return model


def _with_lora(model: Any, rank: int, name: str) -> Any:
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=rank,
        lora_alpha=int(ALPHA_OVER_RANK * rank),
        lora_dropout=0.0,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    try:
        return get_peft_model(model, config)
    except ValueError as error:
        raise EngineError(
            f"{name} has no linear layers that LoRA could train: choose another model."
        ) from error
