"""The torch engine: one adapter over one frozen model. Implements `engines.contract.Engine`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engines.contract import (
    Batch,
    Completion,
    EngineError,
    EngineInfo,
    Messages,
    StepStats,
    TokenSequence,
)
from engines.models import locate, read_settings
from engines.models.architecture import read_architecture
from engines.models.folder import count_parameters, fingerprint, open_folder
from engines.models.tokens import ChatTokenizer
from engines.torch_lora import adapter_files, learner
from engines.torch_lora.adapter import Adapter
from engines.torch_lora.device import MB, SMALL, Placement, free_memory, is_out_of_memory, place
from engines.torch_lora.matrices import merges
from engines.torch_lora.network import Network, Rollout
from engines.torch_lora.sampler import Request, Sampled, sample


class Base:
    """A frozen model on its device with its tokenizer: what one engine or a whole swarm of adapters stands on.

    `notes` collects sentences for the owner, such as memory running short. `sampler_bytes` is what another
    program takes that samples instead of this one."""

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
        path = locate(model)
        self.folder = open_folder(path)
        parameters = count_parameters(self.folder)
        self.placement: Placement = place(parameters, device, threads, thread_share)
        on_cpu = self.placement.device.type == "cpu"
        self.rank = rank or read_settings(path).rank or (8 if on_cpu and parameters >= SMALL else 16)
        self.notes: list[str] = []
        self._check_memory(parameters, sampler_bytes)
        self.tokenizer = ChatTokenizer(self.folder)
        self.network: Network = self._load()
        self.fingerprint = fingerprint(self.folder)
        self.limits = learner.measured(self.network, free_memory(self.placement.device))
        self.limits.tokens = max(1, round(self.limits.tokens * batch_share))
        if self.limits.checkpointing:
            self.note("Memory is short: the learner computes layers twice instead of keeping them.")
        self.parameters = parameters

    def _check_memory(self, parameters: int, sampler_bytes: int | None) -> None:
        """Weights, with the merged copy of them that samples where there is one, or what learning keeps."""
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
                from engines.torch_lora.native import NativeNetwork

                return NativeNetwork(self.folder, shape, device, dtype)
            from engines.torch_lora.fallback import TransformersNetwork

            return TransformersNetwork(self.folder, device, dtype, self.rank)
        except ModuleNotFoundError as error:
            kind = self.folder.config.get("model_type", "of an unknown kind")
            raise EngineError(
                f"{self.folder.name} ({kind}) needs the package {error.name}, which is not installed here: "
                "choose another model."
            ) from error
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise EngineError(
                f"{self.folder.name} does not fit into memory: close other programs or choose a smaller model."
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
        )

    def encode(self, prompt: Messages, completion: str, finished: bool) -> TokenSequence:
        return TokenSequence(
            prompt_T=self.tokenizer.prompt(prompt), completion_T=self.tokenizer.completion(completion, finished)
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
    ) -> list[list[list[Completion]]]:
        """Completions as [node][prompt][completion], all adapters in one pass where memory allows.

        `plain` takes the one adapter given for none."""
        tokens_NP = [self.read(prompts, n, max_tokens) for prompts in prompts_NP]
        found: list[list[list[Sampled]]] = []
        together = self.network.nodes_per_pass(free_memory(self.placement.device))
        for first in range(0, len(adapters_N), together):
            part = slice(first, first + together)
            found += self._sample_together(
                adapters_N[part], tokens_NP[part], n, max_tokens, seeds_N[part], plain
            )
        return [self.write(groups) for groups in found]

    def read(self, prompts_P: Sequence[Messages], n: int, max_tokens: int) -> list[list[int]]:
        """Token ids of every prompt. Raises EngineError for what cannot be sampled from this model."""
        if n < 1 or max_tokens < 1:
            raise EngineError(
                f"{n} completions of {max_tokens} tokens cannot be sampled: both must be at least 1."
            )
        tokens_P = [self.tokenizer.prompt(prompt) for prompt in prompts_P]
        longest = max(map(len, tokens_P), default=0)
        if longest + max_tokens > self.network.context:
            raise EngineError(
                f"A prompt of {longest} tokens and {max_tokens} more exceed the {self.network.context} tokens "
                f"that {self.folder.name} can read: choose shorter answers or another task."
            )
        return tokens_P

    def write(self, groups_P: Sequence[Sequence[Sampled]]) -> list[list[Completion]]:
        """Sampled tokens with their text."""
        texts = iter(self.tokenizer.texts([ids for group in groups_P for ids, _, _ in group]))
        return [
            [
                Completion(tokens_T=ids, logprobs_T=logps, finished=finished, text=next(texts))
                for ids, logps, finished in group
            ]
            for group in groups_P
        ]

    def _sample_together(
        self,
        adapters: Sequence[Adapter],
        tokens_NP: Sequence[Sequence[list[int]]],
        n: int,
        max_tokens: int,
        seeds: Sequence[int],
        plain: bool,
    ) -> list[list[list[Sampled]]]:
        request = Request(tokens_NP, n, max_tokens, seeds, sorted(self.tokenizer.stops))
        longest = max((len(tokens) for row in tokens_NP for tokens in row), default=0)
        most = max(map(len, tokens_NP), default=0)
        row_bytes = self.network.row_bytes(longest + max_tokens)
        free = int(free_memory(self.placement.device) * 0.5)
        fitting = max(1, min(most, free // (row_bytes * n * len(adapters))))

        def rollout() -> Rollout:
            return self.network.plain_rollout() if plain else self.network.rollout(adapters)

        found, used = sample(request, rollout, self.placement.device, fitting)
        if used < fitting:
            self.note(f"Memory ran short: {used} questions are now answered at a time.")
        return found

    def logprobs(self, adapter: Adapter, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        pairs = [(sequence.prompt_T, sequence.completion_T) for sequence in sequences_S]
        return learner.score(self.network, adapter, pairs, self.limits, self.note)

    def step(self, adapter: Adapter, batch: Batch) -> StepStats:
        return learner.step(self.network, adapter, batch, self.limits, self.note)

    def save(self, adapter: Adapter, folder: Path) -> None:
        adapter_files.save(adapter, folder, self.fingerprint, self.folder.name)

    def load(self, adapter: Adapter, folder: Path) -> None:
        adapter_files.load(adapter, folder, self.fingerprint)

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)


class TorchEngine:
    """See `engines.contract.Engine` for every method. `notes` holds sentences for the owner."""

    def __init__(self, base: Base, seed: int = 0) -> None:
        self._base = base
        self._adapter = base.new_adapter(seed)
        self.info = base.info(self._adapter.values.numel())

    @property
    def notes(self) -> list[str]:
        return self._base.notes

    def encode(self, prompt: Messages, completion: str, finished: bool) -> TokenSequence:
        return self._base.encode(prompt, completion, finished)

    def prompt_tokens(self, prompt: Messages) -> list[int]:
        return self._base.tokenizer.prompt(prompt)

    def sample(
        self, prompts_P: Sequence[Messages], n: int, max_tokens: int, seed: int, *, plain: bool = False
    ) -> list[list[Completion]]:
        return self._base.sample([self._adapter], [prompts_P], n, max_tokens, [seed], plain=plain)[0]

    def logprobs(self, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        return self._base.logprobs(self._adapter, sequences_S)

    def step(self, batch: Batch) -> StepStats:
        return self._base.step(self._adapter, batch)

    def step_down(self) -> str | None:
        return self._base.limits.step_down()

    def save(self, folder: Path) -> None:
        self._base.save(self._adapter, folder)

    def load(self, folder: Path) -> None:
        self._base.load(self._adapter, folder)


def open_engine(
    model: str | Path,
    *,
    rank: int | None = None,
    seed: int = 0,
    device: str = "auto",
    threads: int | None = None,
    thread_share: float | None = None,
    batch_share: float = 1.0,
) -> TorchEngine:
    """Opens a model by folder, by name in the local Hugging Face cache, or "starter".

    `rank` defaults to the model's shoal.json, else 16 (8 on a processor from 50 M parameters on).
    `thread_share` of the cores counts where no number of `threads` is given, and `batch_share` of the measured
    budget of tokens is learned from at once. Raises EngineError."""
    base = Base(
        model, rank=rank, device=device, threads=threads, thread_share=thread_share, batch_share=batch_share
    )
    return TorchEngine(base, seed)
