"""The torch engine: one adapter over one frozen model. Implements `engines.contract.Engine`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from engines.contract import (
    Batch,
    Completion,
    Decoder,
    EngineError,
    EngineInfo,
    EngineOptions,
    Heard,
    Messages,
    StepStats,
    TokenSequence,
)
from engines.facts import LARGE_PARAMETERS
from engines.models.folder import count_parameters, fingerprint, open_folder, read_architecture, read_settings
from engines.models.tokens import ChatTokenizer, ModelText, Sampled
from engines.torch_lora.learner import Learner, measured_limits
from engines.torch_lora.network import adapter as adapter_files
from engines.torch_lora.network.adapter import Adapter
from engines.torch_lora.network.device import (
    MB,
    DeviceBudget,
    free_memory,
    is_out_of_memory,
    prepare_device,
)
from engines.torch_lora.network.matrices import merges
from engines.torch_lora.network.network import Network, Rollout
from engines.torch_lora.sampler import Request, TorchDecoder, sample


class Base:
    """A frozen model on its device with its tokenizer, shared by the adapters of an engine or a swarm. `notes`
    collects sentences for the user, such as memory running short. `sampler_bytes` is the memory of another
    program that samples instead."""

    def __init__(
        self,
        model: str | Path,
        *,
        rank: int | None = None,
        device: str = "auto",
        threads: int | None = None,
        thread_share: float | None = None,
        batch_share: float = 1.0,
        sampler_bytes: int | None = None,
    ) -> None:
        path = Path(model)
        self.folder = open_folder(path)
        parameters = count_parameters(self.folder)
        self.placement: DeviceBudget = prepare_device(parameters, device, threads, thread_share)
        on_cpu = self.placement.device.type == "cpu"
        self.rank = rank or read_settings(path).rank or (8 if on_cpu and parameters >= LARGE_PARAMETERS else 16)
        self.notes: list[str] = []
        self._check_memory(parameters, sampler_bytes)
        tokenizer = ChatTokenizer(self.folder)
        self.network: Network = self._load()
        self.text = ModelText(tokenizer, self.folder.name, self.network.context)
        self.fingerprint = fingerprint(self.folder)
        limits = measured_limits(self.network, free_memory(self.placement.device))
        limits.tokens = max(1, round(limits.tokens * batch_share))
        self.learner = Learner(self.network, limits, self.note)
        if limits.checkpointing:
            self.note("Memory is short: it computes layers twice instead of keeping them.")
        self.parameters = parameters

    def _check_memory(self, parameters: int, sampler_bytes: int | None) -> None:
        """Raises EngineError unless there is room for the weights with the merged copy that samples, if there
        is one, or with what learning keeps."""
        copies = 2 if merges(self.placement.device, parameters) and sampler_bytes is None else 1.5
        needed = int(copies * parameters * self.placement.dtype.itemsize) + (sampler_bytes or 0)
        if needed > self.placement.budget_bytes:
            raise EngineError(
                f"{self.folder.name} needs {needed // MB} MB and {self.placement.budget_bytes // MB} MB are "
                "free: close other programs or choose a smaller model."
            )

    def _load(self) -> Network:
        shape = read_architecture(self.folder.config)
        device, dtype = self.placement.device, self.placement.dtype
        try:
            if shape is not None:
                from engines.torch_lora.network.native import NativeNetwork

                return NativeNetwork(self.folder, shape, device, dtype)
            from engines.torch_lora.network.fallback import TransformersNetwork

            return TransformersNetwork(self.folder, device, dtype, self.rank)
        except ModuleNotFoundError as error:
            kind = str(self.folder.config.get("model_type", "of an unknown kind"))[:40]
            raise EngineError(
                f"{self.folder.name} ({kind}) needs the package {error.name}, which isn't installed here: "
                "choose another model."
            ) from error
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise EngineError(
                f"{self.folder.name} doesn't fit into memory: close other programs or choose a smaller model."
            ) from error

    def new_adapter(self, seed: int) -> Adapter:
        return Adapter(self.network.projections, self.rank, seed, self.placement.device)

    def info(self, trainable: int) -> EngineInfo:
        return EngineInfo(
            name="torch",
            device=self.placement.name,
            dtype=str(self.placement.dtype).removeprefix("torch."),
            model=self.folder.name,
            parameters=self.parameters,
            trainable=trainable,
            threads=self.placement.threads,
            memory_budget_mb=self.placement.budget_bytes // MB,
            context=self.network.context,
            talks=self.text.talks,
        )

    def sample(
        self,
        adapters_N: Sequence[Adapter],
        prompts_NP: Sequence[Sequence[Messages]],
        n: int,
        max_tokens: int,
        seeds_N: Sequence[int],
        *,
        plain: bool = False,
        temperature: float = 1.0,
        heard: Heard | None = None,
    ) -> list[list[list[Completion]]]:
        """Samples completions, returned as [node][prompt][completion], all adapters in one pass if memory
        allows. `plain` ignores the adapter and samples from the base model; give one adapter then."""
        tokens_NP = [self.text.tokenize_prompts(prompts, n, max_tokens) for prompts in prompts_NP]
        found: list[list[list[Sampled]]] = []
        together = self.network.nodes_per_pass(free_memory(self.placement.device))
        for first in range(0, len(adapters_N), together):
            part = slice(first, first + together)
            found += self._sample_together(
                adapters_N[part], tokens_NP[part], n, max_tokens, seeds_N[part], plain, temperature, heard
            )
        return [self.text.completions(groups) for groups in found]

    def _sample_together(
        self,
        adapters: Sequence[Adapter],
        tokens_NP: Sequence[Sequence[list[int]]],
        n: int,
        max_tokens: int,
        seeds: Sequence[int],
        plain: bool,
        temperature: float,
        heard: Heard | None,
    ) -> list[list[list[Sampled]]]:
        told = self.text.token_callback(heard)
        request = Request(tokens_NP, n, max_tokens, seeds, sorted(self.text.stops), temperature, told)
        longest = max((len(tokens) for row in tokens_NP for tokens in row), default=0)
        most = max(map(len, tokens_NP), default=0)
        row_bytes = self.network.row_bytes(longest + max_tokens)
        free = int(free_memory(self.placement.device) * 0.5)
        fitting = max(1, min(most, free // (row_bytes * n * len(adapters))))

        found, used = sample(request, lambda: self.rollout(adapters, plain), self.placement.device, fitting)
        if used < fitting:
            self.note(f"Memory ran short: {used} questions are now answered at a time.")
        return found

    def rollout(self, adapters: Sequence[Adapter], plain: bool) -> Rollout:
        return self.network.plain_rollout() if plain else self.network.rollout(adapters)

    def save(self, adapter: Adapter, folder: Path) -> None:
        adapter_files.save(adapter, folder, self.fingerprint, self.folder.name)

    def load(self, adapter: Adapter, folder: Path) -> None:
        adapter_files.load(adapter, folder, self.fingerprint)

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)


class SharesBase:
    """What an engine and a swarm over one base have in common. `notes` holds sentences for the user."""

    def __init__(self, base: Base) -> None:
        self._base = base

    @property
    def notes(self) -> list[str]:
        return self._base.notes

    def encode(self, prompt: Messages, completion: str, finished: bool) -> TokenSequence:
        return self._base.text.encode(prompt, completion, finished)

    def prompt_tokens(self, prompt: Messages) -> list[int]:
        return self._base.text.prompt(prompt)


class TorchEngine(SharesBase):
    """The torch engine; methods as in `engines.contract.Engine`."""

    def __init__(self, base: Base, seed: int = 0) -> None:
        super().__init__(base)
        self._adapter = base.new_adapter(seed)
        self.info = base.info(self._adapter.values.numel())

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
        return self._base.sample(
            [self._adapter],
            [prompts_P],
            n,
            max_tokens,
            [seed],
            plain=plain,
            temperature=temperature,
            heard=heard,
        )[0]

    def decoder(self, rows: int, tokens: int, *, plain: bool = False) -> Decoder:
        free = int(free_memory(self._base.placement.device) * 0.5)
        fitting = free // self._base.network.row_bytes(tokens)
        return TorchDecoder(self._base.rollout([self._adapter], plain), max(1, min(rows, fitting)))

    def logprobs(self, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        return self._base.learner.logprobs(self._adapter, sequences_S)

    def step(self, batch: Batch) -> StepStats:
        return self._base.learner.step(self._adapter, batch)

    def step_down(self) -> str | None:
        return self._base.learner.limits.step_down()

    def save(self, folder: Path) -> None:
        self._base.save(self._adapter, folder)

    def load(self, folder: Path) -> None:
        self._base.load(self._adapter, folder)


def open_engine(model: str | Path, *, seed: int = 0, **options: Unpack[EngineOptions]) -> TorchEngine:
    """Opens the model in folder `model`. Raises EngineError."""
    return TorchEngine(Base(model, **options), seed)


class TorchSwarm(SharesBase):
    """Several nodes over one base; methods as in `engines.contract.Engine`, with the node's index first. A node
    does exactly what an engine of its own with the same seed would do."""

    def __init__(self, base: Base, seeds_N: Sequence[int]) -> None:
        super().__init__(base)
        self._adapters_N = [base.new_adapter(seed) for seed in seeds_N]
        self.info = base.info(self._adapters_N[0].values.numel())

    @property
    def nodes(self) -> int:
        return len(self._adapters_N)

    def sample(
        self, prompts_NP: Sequence[Sequence[Messages]], n: int, max_tokens: int, seeds_N: Sequence[int]
    ) -> list[list[list[Completion]]]:
        """Samples completions, returned as [node][prompt][completion]. Nodes may have different numbers of
        prompts, including 0."""
        if len(prompts_NP) != self.nodes or len(seeds_N) != self.nodes:
            raise ValueError(f"sample needs prompts and a seed for each of {self.nodes} nodes")
        return self._base.sample(self._adapters_N, prompts_NP, n, max_tokens, seeds_N)

    def logprobs(self, node: int, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        return self._base.learner.logprobs(self._adapters_N[node], sequences_S)

    def base_logprobs(self, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        """Returns the log-probs under the base model: a fresh adapter has no effect."""
        return self._base.learner.logprobs(self._base.new_adapter(0), sequences_S)

    def step(self, node: int, batch: Batch) -> StepStats:
        return self._base.learner.step(self._adapters_N[node], batch)

    def save(self, node: int, folder: Path) -> None:
        self._base.save(self._adapters_N[node], folder)

    def load(self, node: int, folder: Path) -> None:
        self._base.load(self._adapters_N[node], folder)

    def reset(self, seeds_N: Sequence[int]) -> None:
        """Replaces all adapters by fresh ones, for the next run on the same base."""
        self._adapters_N = [self._base.new_adapter(seed) for seed in seeds_N]


def open_swarm(model: str | Path, seeds_N: Sequence[int], **options: Unpack[EngineOptions]) -> TorchSwarm:
    """Opens one node for each seed over one base; see `open_engine`."""
    return TorchSwarm(Base(model, **options), seeds_N)
