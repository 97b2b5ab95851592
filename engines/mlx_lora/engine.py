"""The MLX engine: one adapter over one frozen model. Implements `engines.contract.Engine`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import mlx.core as mx

from engines.contract import (
    Batch,
    Completion,
    EngineError,
    EngineInfo,
    EngineOptions,
    Heard,
    Messages,
    StepStats,
    TokenSequence,
)
from engines.facts import LARGE_PARAMETERS, MB
from engines.mlx_lora.adapter import Adapter
from engines.mlx_lora.learner import Learner, measured_limits
from engines.mlx_lora.network import Network, free_memory, is_out_of_memory, limit_memory
from engines.mlx_lora.sampler import MlxDecoder, Request, Rollout, sample
from engines.models.folder import (
    KNOWN_TYPES,
    Architecture,
    Folder,
    count_parameters,
    fingerprint,
    open_folder,
    read_architecture,
    read_settings,
)
from engines.models.tokens import ChatTokenizer, ModelText


class MlxEngine:
    """The MLX engine; methods as in `engines.contract.Engine`. `notes` collects sentences for the user."""

    def __init__(self, model: str | Path, *, seed: int = 0, **options: Unpack[EngineOptions]) -> None:
        path = Path(model)
        self._folder = open_folder(path)
        shape = read_architecture(self._folder.config)
        if shape is None:
            kind = str(self._folder.config.get("model_type", "unknown"))[:40]
            raise EngineError(
                f"The MLX engine doesn't know the architecture {kind!r} of {self._folder.name} "
                f"(it knows {', '.join(KNOWN_TYPES)}): choose the torch engine."
            )
        parameters = count_parameters(self._folder)
        self._on_gpu = _place(options.get("device", "auto"))
        dtype = mx.bfloat16 if self._on_gpu and parameters >= LARGE_PARAMETERS else mx.float32
        self.notes: list[str] = []
        budget = free_memory(self._on_gpu)
        if parameters * dtype.size > budget:
            raise EngineError(
                f"{self._folder.name} needs {parameters * dtype.size // MB} MB and {budget // MB} MB are free: "
                "close other programs or choose a smaller model."
            )
        limit_memory(budget, self._on_gpu)
        self._text = ModelText(ChatTokenizer(self._folder), self._folder.name, shape.context)
        rank = (
            options.get("rank")
            or read_settings(path).rank
            or (8 if not self._on_gpu and parameters >= LARGE_PARAMETERS else 16)
        )
        self._network = _load(self._folder, shape, dtype, rank)
        self._fingerprint = fingerprint(self._folder)
        limits = measured_limits(self._network, free_memory(self._on_gpu), self._on_gpu)
        limits.tokens = max(1, round(limits.tokens * options.get("batch_share", 1.0)))
        if limits.checkpointing:
            self.notes.append("Memory is short: it computes layers twice instead of keeping them.")
        self._merges = True
        self._learner = Learner(self._network, limits, self.notes.append)
        self._adapter = Adapter(self._network.places, rank, seed)
        self.info = EngineInfo(
            name="mlx",
            device="Apple GPU" if self._on_gpu else "CPU",
            dtype=str(dtype).rpartition(".")[2],
            model=self._folder.name,
            parameters=parameters,
            trainable=self._adapter.values.size,
            threads=1,
            memory_budget_mb=budget // MB,
            context=shape.context,
            talks=self._text.talks,
        )

    def encode(self, prompt: Messages, completion: str, finished: bool) -> TokenSequence:
        return self._text.encode(prompt, completion, finished)

    def prompt_tokens(self, prompt: Messages) -> list[int]:
        return self._text.prompt(prompt)

    def sample(
        self,
        prompts_P: Sequence[Messages],
        n: int,
        max_tokens: int,
        seed: int,
        *,
        plain: bool = False,
        temperature: float = 1.0,
        heard: Heard | None = None,
    ) -> list[list[Completion]]:
        tokens_P = self._text.tokenize_prompts(prompts_P, n, max_tokens)
        longest = max(map(len, tokens_P), default=0)
        decoder = self._network.plain if plain else self._adapted()
        row_bytes = self._network.row_bytes(longest + max_tokens) * n
        fitting = max(1, min(len(tokens_P), int(free_memory(self._on_gpu) * 0.5) // row_bytes))
        told = self._text.token_callback(heard)
        request = Request(tokens_P, n, max_tokens, seed, self._text.stops, temperature, told)
        found, used = sample(request, lambda: Rollout(self._network, decoder), fitting, self._on_gpu)
        if used < fitting:
            self.notes.append(f"Memory ran short: {used} questions are now answered at a time.")
        return self._text.completions(found)

    def decoder(self, rows: int, tokens: int, *, plain: bool = False) -> MlxDecoder:
        decoder = self._network.plain if plain else self._adapted()
        fitting = int(free_memory(self._on_gpu) * 0.5) // self._network.row_bytes(tokens)
        return MlxDecoder(Rollout(self._network, decoder), max(1, min(rows, fitting)))

    def _adapted(self) -> Any:
        """Returns the decoder to sample with: with the adapter merged into a copy of the weights, or if memory
        is short, with separate LoRA layers, which is slower."""
        if self._merges and not self._network.has_merged:
            self._merges = self._network.merge_bytes < free_memory(self._on_gpu) * 0.8
            if not self._merges:
                self.notes.append("Memory is short: answers are sampled without a merged copy, more slowly.")
        if self._merges:
            return self._network.merged(self._adapter)
        self._network.bind(self._adapter.matrices(self._adapter.values))
        return self._network.learner

    def logprobs(self, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        return self._learner.logprobs(self._adapter, sequences_S)

    def step(self, batch: Batch) -> StepStats:
        return self._learner.step(self._adapter, batch)

    def step_down(self) -> str | None:
        return self._learner.limits.step_down()

    def save(self, folder: Path) -> None:
        self._adapter.save(folder, self._fingerprint, self._folder.name)

    def load(self, folder: Path) -> None:
        self._adapter.load(folder, self._fingerprint)


def _place(device: str) -> bool:
    """Sets MLX's device; returns True for Apple's GPU. Raises EngineError for a missing device."""
    has_gpu = mx.metal.is_available()
    if device not in ("auto", "gpu", "cpu"):
        raise EngineError(f"There is no device {device!r} for MLX: choose auto, gpu or cpu.")
    if device == "gpu" and not has_gpu:
        raise EngineError("MLX sees no Apple GPU on this computer: choose cpu or auto.")
    on_gpu = has_gpu and device != "cpu"
    mx.set_default_device(mx.gpu if on_gpu else mx.cpu)
    return on_gpu


def _load(folder: Folder, shape: Architecture, dtype: mx.Dtype, rank: int) -> Network:
    try:
        return Network(folder, shape, dtype, rank)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise EngineError(
            f"{folder.name} doesn't fit into memory: close other programs or choose a smaller model."
        ) from error
