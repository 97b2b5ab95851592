"""The contract of every engine: tokens, weights and adapters in, log-probabilities out.

The trainer process opens one engine and calls it, one call at a time, in this order in a round: `sample`
generates answers; `encode` and `logprobs` score peers' answers; `step` takes each optimiser step; `save` writes
the checkpoint, and `load` restores one after a restart. The engine owns the frozen base model, one LoRA
adapter, its optimiser state and the memory of both; the caller owns files and folders, and the meaning of every
token's weight.

Not part of the contract: swarms, tasks, rewards, groups and the algorithm. Credit arrives as one weight per
token (`Row.weights_T`), computed in app.sapo, so that engines can be compared on the same batch. Also not part
of it: asynchronous calls and several adapters at a time, since a node trains one
(`engines.torch_lora.engine.TorchSwarm` has several, for the lab).

Shape suffixes: `_P` prompts, `_G` completions of one group, `_S` sequences, `_T` tokens.

`progress` counts the tokens that this process has read, sampled and learned, which tells a slow engine from a
dead one: engines add to it after each call of the sampler and each micro-batch of the learner."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict

import msgspec

if TYPE_CHECKING:
    from numpy.typing import NDArray

Messages = Sequence[dict[str, str]]
"""A prompt as chat messages, `{"role": ..., "content": ...}`, rendered by the model's own chat template."""
Heard = Callable[[str], bool]
"""Called with an answer's text so far; returning False stops the answer."""


Kind = Literal["f32", "f16", "bf16", "q8_0"]
"""Number formats of the GGUF files written here."""


GREEDY_TEMPERATURE = 1e-4
"""The temperature at which the most likely token is taken."""


class EngineError(Exception):
    """An error the user can act on: one sentence that says what failed, why, and what to do."""


class TooLongError(EngineError):
    """Prompt and answer exceed the model's context length."""


class AdapterError(EngineError):
    """A saved adapter or optimiser state is missing, damaged or made for another model."""


class EngineInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Describes the running engine; shown to the user and written into the history.

    `sampler` names the program that samples if it is not the learner itself, for example "llama.cpp q8_0": its
    log-probabilities then differ slightly from the learner's and belong into `Row.sampler_logprobs_T`."""

    name: str
    device: str
    dtype: str
    model: str
    parameters: int
    trainable: int
    threads: int
    memory_budget_mb: int
    context: int = 0
    """Maximum tokens of prompt and answer; 0 if unknown."""
    adapter_format: str = "peft"
    sampler: str = ""
    talks: bool = False
    """Whether the chat template includes earlier turns; the starter model's includes only the last question."""


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """One sampled completion.

    `tokens_T` includes the end token when `finished`; `logprobs_T` (nats, same length) are those of the
    sampler's own distribution at temperature 1; `text` is decoded without special tokens."""

    tokens_T: list[int]
    logprobs_T: list[float]
    finished: bool
    text: str


class TokenSequence(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt and one completion as token ids."""

    prompt_T: list[int]
    completion_T: list[int]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One training sequence. The step minimises `-sum_t weights_T[t] * log pi(completion_T[t])`.

    Weights are final: advantage, importance and the batch denominator are already in them. If `old_logprobs_T`
    is set, the probability ratio exp(log pi - old) is clipped as in PPO by `Batch.clip`; otherwise it is 1.

    `sampler_logprobs_T` (mu) is set if a program other than the learner sampled the row: each token's weight is
    then first multiplied by the constant min(exp(log pi - mu), `Batch.sampler_cap`), truncated importance
    sampling (Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy RL
    training").
    """

    prompt_T: list[int]
    completion_T: list[int]
    weights_T: list[float]
    old_logprobs_T: list[float] | None = None
    sampler_logprobs_T: list[float] | None = None


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """All rows of one optimiser step. `clip` (low, high) limits PPO's ratio to [1 - low, 1 + high], for example
    (0.2, 0.28); None does not clip."""

    rows_S: list[Row]
    learning_rate: float
    clip: tuple[float, float] | None = None
    sampler_cap: float | None = None
    """Maximum importance weight for correcting a sampler that is not the learner (see Row)."""
    upper: bool = False
    """Whether teaching the upper half of the layers is enough, which an engine may do faster."""


class StepStats(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of one optimiser step. `loss` is the minimised sum, `grad_norm` is before clipping.

    Over the tokens with a `sampler_logprobs_T`: `mismatch` is the mean |log pi - mu| (nats), `capped` the share
    whose ratio exceeds the cap. Both None if there are no such tokens. `nats_S`: -log pi of each whole
    completion before the step, of the rows with a weight, in their order: the forward pass tells it anyway."""

    loss: float
    grad_norm: float
    rows: int
    tokens: int
    micro_batches: int
    seconds: float
    mismatch: float | None = None
    capped: float | None = None
    nats_S: tuple[float, ...] = ()


class EngineOptions(TypedDict, total=False):
    """Options for opening any engine."""

    rank: int | None
    """LoRA rank; by default the value in the model's shoal.json, else 16 (8 on a processor from 50 M parameters
    on)."""
    device: str
    """"auto", or a device of the engine: "cpu", "cuda", "cuda:1", "mps", "gpu"."""
    threads: int | None
    thread_share: float | None
    """Share of the cores to use if `threads` is not given."""
    batch_share: float
    """Share of the measured token budget to use for one micro-batch."""


class Decoder(Protocol):
    """Several answers in progress, one row each. The caller samples their tokens, so every request can have its
    own temperature, length and end. Logits are fp32 on the processor, (R, V)."""

    rows: int
    """Maximum number of rows."""
    joins: bool
    """Whether rows may be added while others are in progress; otherwise all are read in one call."""

    def read(self, prompts_R: Sequence[Sequence[int]], more: int) -> NDArray[Any]:
        """Adds rows after the existing ones, each for at most `more` tokens. Returns the logits of their first
        tokens."""
        ...

    def advance(self, tokens_R: Sequence[int]) -> NDArray[Any]:
        """Appends one token to every row. Returns the logits of the next tokens, valid until the next call."""
        ...

    def keep(self, rows_R: Sequence[int]) -> None:
        """Keeps only these rows, in this order. A row may only move to the place of one that is dropped."""
        ...


class Engine(Protocol):
    """Sampling and learning with one LoRA adapter over a frozen base model."""

    info: EngineInfo

    def encode(self, prompt: Messages, completion: str, finished: bool) -> TokenSequence:
        """Tokenizes text that was not sampled here: the prompt through the chat template, the completion as
        plain text, and the end token if `finished`."""
        ...

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
        """Samples `n` completions of every prompt, top-p 1. The same seed gives the same tokens. `plain`
        samples from the base model, without the adapter. At temperature GREEDY_TEMPERATURE each token is the
        likeliest. `heard` is called with the text so far of the first completion: after every token, on a GPU
        after every few; give one prompt and `n` = 1 then."""
        ...

    def decoder(self, rows: int, tokens: int, *, plain: bool = False) -> Decoder:
        """Opens a decoder for up to `rows` answers, fewer if memory is short, each of at most `tokens` tokens
        including its prompt. Only one decoder is valid at a time; `sample` and `load` invalidate it.
        Raises EngineError."""
        ...

    def prompt_tokens(self, prompt: Messages) -> list[int]:
        """Returns the token ids of a prompt, as `sample` uses them."""
        ...

    def logprobs(self, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
        """Returns the log-probabilities (nats) of the completion tokens under the learner."""
        ...

    def step(self, batch: Batch) -> StepStats:
        """Takes one optimiser step. Rows whose weights are all zero are dropped before the forward pass. Raises
        EngineError if the loss is not finite; adapter and optimiser are then unchanged."""
        ...

    def step_down(self) -> str | None:
        """Uses smaller micro-batches from now on and returns a sentence about it; None if they cannot get
        smaller."""
        ...

    def save(self, folder: Path) -> None:
        """Writes the adapter (PEFT safetensors, opens in peft) and the optimiser state, flushed to disk."""
        ...

    def load(self, folder: Path) -> None:
        """Restores what `save` wrote. Raises AdapterError; the current adapter is then unchanged."""
        ...


HEARD_EVERY_S = 1.0
"""Minimum seconds between two calls of `heard`."""


class Progress:
    """Counts the tokens this process has read, sampled and learned. `heard` is called with the count while it
    grows."""

    def __init__(self) -> None:
        self.tokens = 0
        self.heard: Callable[[int], None] | None = None
        self._told = 0.0

    def add(self, tokens: int) -> None:
        """Adds to the count, and calls `heard` if HEARD_EVERY_S has passed since the last call."""
        self.tokens += tokens
        if self.heard is not None and time.monotonic() >= self._told + HEARD_EVERY_S:
            self._told = time.monotonic()
            self.heard(self.tokens)


progress = Progress()
"""The counter of this process."""
