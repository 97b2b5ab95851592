"""The Network for all other architectures: transformers' own forward pass with peft's LoRA layers.

Slower to start and to run than our decoder, but correct for everything AutoModelForCausalLM supports. The
adapter's flat buffers hold the values: peft's parameters are pointed at them before each use. The head is
computed only at the positions whose logits are needed: with a vocabulary of 262,144 the logits of one prompt
took more memory than the model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch

from engines.contract import EngineError
from engines.models.folder import Folder
from engines.torch_lora.network.adapter import ALPHA_OVER_RANK, Adapter, Projection
from engines.torch_lora.network.device import is_out_of_memory
from engines.torch_lora.network.layout import Tokens
from engines.torch_lora.network.logprobs import States
from engines.torch_lora.network.network import Rollout

_MAMBA = ("mamba", "mamba2", "falcon_mamba", "falcon_h1", "nemotron_h")
"""Families that use the weights of `out_proj` without calling the layer, so that LoRA would have no effect."""

_IN_EXPERTS = {"gate", "gate_proj", "up_proj", "down_proj", "w1", "w2", "w3"}


def unsupported_cache(folder: Folder) -> EngineError:
    """Returns the error for an architecture whose cache Shoal does not understand."""
    family = str(folder.config.get("model_type", "unknown"))[:40]
    return EngineError(
        f"{folder.name} can't learn here yet: its architecture, {family!r}, keeps what it has read in a way "
        "Shoal doesn't know. Choose a Qwen, Llama, Gemma or Mistral model."
    )


def context(config: Any) -> int:
    """Returns the context length, whatever the architecture calls it."""
    for name in ("max_position_embeddings", "n_positions", "max_seq_len"):
        if isinstance(length := getattr(config, name, None), int):
            return length
    return 2048


def load(folder: Folder, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    family = str(folder.config.get("model_type", "unknown"))[:40]
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder.path, local_files_only=True, trust_remote_code=False, use_safetensors=True, dtype=dtype
        )
    except (AttributeError, TypeError, OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
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


def with_lora(model: Any, rank: int, name: str) -> Any:
    """Adds LoRA to every linear layer except the head, each by name. In a mixture of experts, layers with the
    same names as parts of fused experts are left out: peft confuses the two, and cannot load them again."""
    from peft import LoraConfig, get_peft_model
    from transformers.pytorch_utils import Conv1D

    skipped = {"out_proj"} if model.config.model_type in _MAMBA else set()
    if any(parameter.endswith("experts.gate_up_proj") for parameter, _ in model.named_parameters()):
        skipped |= _IN_EXPERTS
    layers = [
        layer
        for layer, module in model.named_modules()
        if isinstance(module, torch.nn.Linear | Conv1D)
        and module is not model.get_output_embeddings()
        and layer.rpartition(".")[2] not in skipped
    ]
    if not layers:
        raise EngineError(f"{name} has no linear layers that LoRA could train: choose another model.")
    config = LoraConfig(
        r=rank,
        lora_alpha=int(ALPHA_OVER_RANK * rank),
        lora_dropout=0.0,
        target_modules=layers,
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, config)


Choose = Callable[[torch.Tensor], torch.Tensor]
"""Selects the states that predict the wanted tokens from hidden states (rows, positions, d)."""
_LARGE = 60.0
"""A logit large enough to reveal a soft cap (Gemma 2: 30)."""
_TRIED = [([2] * 64, [3, 4] * 8 + [5])] * 4
"""A group whose forward pass shows how much memory a token takes."""


class TransformersNetwork:
    """One model of transformers with one set of LoRA layers, shared by all adapters in turn."""

    def __init__(self, folder: Folder, device: torch.device, dtype: torch.dtype, rank: int) -> None:
        model = load(folder, dtype)
        self.device = device
        self.dtype = dtype
        config: Any = model.config.get_text_config()
        self.vocabulary = int(config.vocab_size)
        self.context = context(config)
        self._width = int(getattr(config, "hidden_size", 1024))
        self._depth = int(getattr(config, "num_hidden_layers", 24))
        self._model: Any = with_lora(model, rank, folder.name).to(device)
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
        named = inspect.signature(model.forward).parameters
        self._positioned = "position_ids" in named
        self._cache = next((name for name in ("past_key_values", "cache_params") if name in named), "state")
        self._choose: Choose | None = None
        self._head: torch.Tensor | None = None
        self._scale = 1.0
        self._shares = False
        try:
            model.get_output_embeddings().register_forward_pre_hook(self._before_head)
            self._measure(model)
        except (AttributeError, IndexError, KeyError, NotImplementedError, TypeError, ValueError) as error:
            raise unsupported_cache(folder) from error
        except RuntimeError as error:
            raise (error if is_out_of_memory(error) else unsupported_cache(folder)) from error

    def bind(self, adapter: Adapter) -> Any:
        """Makes the model use this adapter, and returns the model: its parameters and gradients become views of
        the adapter's buffers."""
        for (_, module), pair in zip(self._layers, adapter.pairs, strict=True):
            for parameter, leaf in (
                (module.lora_A["default"].weight, pair.a),
                (module.lora_B["default"].weight, pair.b),
            ):
                parameter.data = leaf.detach()
                parameter.grad = leaf.grad
        return self._model

    def _before_head(self, _: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
        if self._choose is None:
            return None
        self._chosen = self._choose(inputs[0])
        return (self._chosen[None],) if self._head is None else (inputs[0][:1, :1],)

    def run(
        self,
        choose: Choose,
        tokens: torch.Tensor,
        mask: torch.Tensor,
        positions: torch.Tensor,
        cache: Any = None,
        caching: bool = True,
    ) -> tuple[torch.Tensor, Any]:
        """Returns the states that predict the chosen tokens, (C, d) if the head is a matrix, else their logits
        (C, V); and the cache."""
        more: dict[str, Any] = {"position_ids": positions} if self._positioned else {}
        if cache is not None:
            more[self._cache] = cache
        self._choose = choose
        try:
            out = self._model(input_ids=tokens, attention_mask=mask, use_cache=caching, **more)
        finally:
            self._choose = None
        chosen = out.logits[0] if self._head is None else self._chosen * self._scale
        return chosen, getattr(out, self._cache, None)

    def logits(self, chosen: torch.Tensor) -> torch.Tensor:
        """Returns fp32 logits from the first result of `run`."""
        return (chosen if self._head is None else chosen @ self._head.t()).float()

    def shares_prompts(self, checkpointing: bool) -> bool:
        """Returns whether prompts are shared; not possible with `checkpointing`, which cannot keep keys and
        values."""
        return self._shares and not checkpointing

    def states(
        self,
        adapter: Adapter,
        sequences_S: Sequence[tuple[Tokens, Tokens]],
        checkpointing: bool,
        upper: bool = False,
    ) -> States:
        self._recompute(checkpointing)
        self.bind(adapter)
        run = self._together if self.shares_prompts(checkpointing) else self._apart
        return States(run(sequences_S), self._head)

    def _apart(self, sequences_S: Sequence[tuple[Tokens, Tokens]]) -> torch.Tensor:
        """Computes every sequence with its own copy of the prompt."""
        tokens, mask = _padded([[*prompt, *completion[:-1]] for prompt, completion in sequences_S], self.device)
        row_C, column_C = torch.tensor(
            [
                (row, len(prompt) + position - 1)
                for row, (prompt, completion) in enumerate(sequences_S)
                for position in range(len(completion))
            ],
            device=self.device,
        ).unbind(1)
        positions = torch.arange(tokens.shape[1], device=self.device).expand_as(tokens)
        return self.run(lambda hidden: hidden[row_C, column_C], tokens, mask, positions, caching=False)[0]

    def _together(self, sequences_S: Sequence[tuple[Tokens, Tokens]]) -> torch.Tensor:
        """Computes each distinct prompt once; completions continue from its keys and values."""
        prompt_of: dict[tuple[int, ...], int] = {}
        owner_S = [prompt_of.setdefault(tuple(prompt), len(prompt_of)) for prompt, _ in sequences_S]
        prompts = [list(prompt) for prompt in prompt_of]
        tokens, mask = _padded(prompts, self.device, left=True)
        chosen, cache = self.run(_last, tokens, mask, _places(mask))
        fed_R = [(owner, completion[:-1]) for owner, (_, completion) in zip(owner_S, sequences_S, strict=True)]
        fed_R = [(owner, fed) for owner, fed in fed_R if fed]
        if fed_R:
            owner_R = torch.tensor([owner for owner, _ in fed_R], device=self.device)
            tokens, fed_mask = _padded([fed for _, fed in fed_R], self.device)
            cache.reorder_cache(owner_R)
            before = mask[owner_R].sum(1, keepdim=True)
            row_C, column_C = fed_mask.nonzero(as_tuple=True)
            more, _ = self.run(
                lambda hidden: hidden[row_C, column_C],
                tokens,
                torch.cat([mask[owner_R], fed_mask], 1),
                before + torch.arange(tokens.shape[1], device=self.device),
                cache,
            )
            chosen = torch.cat([chosen, more])
        order, at = [], len(prompts)
        for owner, (_, completion) in zip(owner_S, sequences_S, strict=True):
            order += [owner, *range(at, at + len(completion) - 1)]
            at += len(completion) - 1
        return chosen[torch.tensor(order, device=self.device)]

    def _measure(self, model: Any) -> None:
        """Finds out how this architecture computes logits, whether prompts can be shared, and how much memory a
        token takes. Raises ValueError if an answer cannot be continued from a prompt's cache."""
        plain = [([2, 3, 4], [5, 4, 3]), ([2, 4, 3, 5, 6], [3, 5, 4])]
        with torch.no_grad():
            self._find_head(model)
            rollout = TransformersRollout(self)
            begun = rollout.prefill([[prompt for prompt, _ in plain]], 2, 3)
            rollout.keep(torch.tensor([[0, 3]], device=self.device))
            given = [[answer[step] for _, answer in plain] for step in range(2)]
            later = [rollout.advance(torch.tensor([tokens], device=self.device))[0] for tokens in given]
            sampled = torch.stack([begun[0, [0, 3]], *later], 1).flatten(0, 1)
            expected = self.logits(self._apart(plain))
            self._shares = rollout.shares_prefix_cache
            apart = [sampled, self.logits(self._together(plain))] if self._shares else [sampled]
        # in bf16 two orders of the same sums differ by some hundredths; a wrong state by the logits' own spread
        most = float(expected.std()) * (0.02 if self.dtype == torch.float32 else 0.3)
        if any(float((one - expected).abs().max()) > most for one in apart):
            raise ValueError("logits from the cache differ from those without")
        self._kept, tokens = self._bytes_kept(), 128 if self._shares else 320
        self._kept //= tokens

    def _find_head(self, model: Any) -> None:
        """Finds the head as a matrix, if logits are a multiple of its product with the hidden states; a bias or
        a soft cap rules that out."""
        weight = model.get_output_embeddings().weight
        seen: list[torch.Tensor] = []

        def enlarge(hidden: torch.Tensor) -> torch.Tensor:
            last = hidden[0, -1:]
            seen.append(last * (_LARGE / (last @ weight.t()).abs().max().clamp(min=1e-6)))
            return seen[0]

        mask = torch.ones(1, 3, dtype=torch.long, device=self.device)
        tokens = mask * torch.arange(2, 5, device=self.device)
        found = self.run(enlarge, tokens, mask, _places(mask), caching=False)[0].float()
        product = (seen[0] @ weight.t()).float()
        scale = float((found * product).sum() / (product * product).sum())
        if float((found - scale * product).abs().max()) < 0.01 * abs(scale) * _LARGE:
            self._scale = 1.0 if abs(scale - 1) < 1e-3 else scale
            self._head = weight.detach()

    def _bytes_kept(self) -> int:
        """Returns the bytes that a forward pass of `_TRIED` keeps until its backward pass, without the
        weights."""
        weights = {p.untyped_storage().data_ptr() for p in self._model.parameters()}
        kept: dict[int, int] = {}

        def see(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in weights:
                kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(see, lambda tensor: tensor):
            states = (self._together if self._shares else self._apart)(_TRIED)
        del states
        return sum(kept.values())

    def _recompute(self, wanted: bool) -> None:
        """Switches gradient checkpointing, which transformers supports in training mode only; dropout is zero
        by then."""
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
        self.bind(adapters_N[0])
        return TransformersRollout(self)

    def plain_rollout(self) -> Rollout:
        self._recompute(False)
        return TransformersRollout(self, self._model.disable_adapter)

    def row_bytes(self, tokens: int) -> int:
        return 2 * self._depth * self._width * tokens * self.dtype.itemsize + 12 * self.vocabulary

    def token_bytes(self, checkpointing: bool) -> int:
        """Returns the measured bytes per token, plus the gradients of the layer in its backward pass;
        checkpointing keeps one hidden state of each layer. If the head is not a matrix, logits and their
        gradients are added."""
        layer = self._kept // self._depth
        kept = self._width * self._depth * self.dtype.itemsize + layer if checkpointing else self._kept
        return kept + 2 * layer + (12 * self.vocabulary if self._head is None else 0)

    def nodes_per_pass(self, free_bytes: int) -> int:
        return 1


class TransformersRollout:
    """The Rollout over a cache of transformers: prompts padded on the left, one adapter. `adapted` is a context
    in which the model runs, for example to disable the adapter."""

    def __init__(self, network: TransformersNetwork, adapted: Callable[[], Any] = nullcontext) -> None:
        self._network = network
        self._adapted = adapted
        self._cache: Any = None

    @property
    def shares_prefix_cache(self) -> bool:
        """Whether the cache holds only keys and values, through which gradients flow, so that prompts can be
        shared."""
        from transformers.cache_utils import DummyLayer, DynamicLayer, LinearAttentionCacheLayerMixin

        layers = self._cache.layers
        return all(isinstance(one, DynamicLayer | DummyLayer) for one in layers) and not any(
            isinstance(one, LinearAttentionCacheLayerMixin) for one in layers
        )

    @torch.inference_mode()
    def prefill(self, prompts_NP: Sequence[Sequence[Tokens]], n: int, max_tokens: int) -> torch.Tensor:
        tokens, self._mask = _padded(prompts_NP[0], self._network.device, left=True)
        logits = self._run(tokens, _places(self._mask))
        row_R = torch.arange(len(tokens), device=tokens.device).repeat_interleave(n)
        self._select(row_R)
        return logits[row_R][None]

    @torch.inference_mode()
    def advance(self, tokens_NR: torch.Tensor) -> torch.Tensor:
        self._mask = torch.cat([self._mask, self._mask.new_ones(self._mask.shape[0], 1)], 1)
        return self._run(tokens_NR[0][:, None], self._mask.sum(1, keepdim=True) - 1)[None]

    @torch.inference_mode()
    def keep(self, rows_NR: torch.Tensor) -> None:
        self._select(rows_NR[0])

    def _select(self, row_R: torch.Tensor) -> None:
        self._cache.reorder_cache(row_R)
        self._mask = self._mask[row_R]

    def _run(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        with self._adapted():
            chosen, self._cache = self._network.run(_last, tokens, self._mask, positions, self._cache)
        return self._network.logits(chosen)


def _last(hidden: torch.Tensor) -> torch.Tensor:
    return hidden[:, -1]


def _padded(
    rows: Sequence[Sequence[int]], device: torch.device, *, left: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pads rows to one length; returns tokens and a mask that is 1 where they are not padding. A row is padded
    with its own first token: the embedding of a padding token is often zero, and Gemma 3n's gradient of a
    standard deviation of zeros is NaN."""
    longest = max(map(len, rows))
    pads = [[row[0]] * (longest - len(row)) for row in rows]
    tokens = [[*pad, *row] if left else [*row, *pad] for row, pad in zip(rows, pads, strict=True)]
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=device)
    return torch.tensor(tokens, device=device), mask.flip(1) if left else mask


def _places(mask: torch.Tensor) -> torch.Tensor:
    """Returns the positions of tokens after padding on the left."""
    return (mask.cumsum(1) - 1).clamp_(min=0)
