"""The memory that a model needs to sample and to learn, by the engines' own accounting, and its disk space.

The formulas are those of engines.torch_lora (weights, the merged copy that samples, the key-value cache, the
activations of a micro-batch, LoRA with its optimiser); tests compare the two.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from engines.files import in_bytes

Dtype = Literal["float32", "bfloat16"]
ITEMSIZE: dict[Dtype, int] = {"float32": 4, "bfloat16": 2}

COMPLETIONS = 8
PROMPT_TOKENS = 256
"""Tokens of a long prompt of the puzzles, with its chat template."""
LEAST_TOKENS, GOOD_TOKENS = 256, 1024
"""Tokens of a micro-batch: the smallest the learner steps down to, and what it takes with room to spare."""
ACTIVATION_SHARE = 0.5
"""Share of the memory left by the weights that the learner gives to a micro-batch."""
MERGED_BELOW = 50 * 10**6
"""Parameters of a model whose adapter is merged into a second copy for sampling, on a processor."""
DISK_SPARE = 500 * 10**6
"""Bytes of disk that must stay free: a full disk stops more than Shoal."""

Size = Annotated[int, msgspec.Meta(ge=1)]


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Llama-like decoder's sizes, as in its config.json."""

    family: Literal["qwen2", "qwen3", "llama"]
    hidden: Size
    layers: Size
    heads: Size
    kv_heads: Size
    head_dim: Size
    inner: Size
    vocabulary: Size
    context: Size
    tied: bool

    @property
    def linear_parameters(self) -> int:
        """The parameters of the matrices that LoRA adapts, without biases."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        return self.layers * (attention + 3 * self.hidden * self.inner)

    @property
    def parameters(self) -> int:
        """All parameters, a tied head counted once.

        >>> Shape(family="qwen2", hidden=896, layers=24, heads=14, kv_heads=2, head_dim=64, inner=4864,
        ...       vocabulary=151936, context=32768, tied=True).parameters
        494032768
        """
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        norms = self.layers * 2 * self.hidden + self.hidden
        more = {"qwen2": self.head_dim * (self.heads + 2 * self.kv_heads), "qwen3": 2 * self.head_dim}
        return embeddings + self.linear_parameters + norms + self.layers * more.get(self.family, 0)

    def adapter_parameters(self, rank: int) -> int:
        """LoRA of that rank on all seven matrices of every layer."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        sides = 2 * (self.hidden + queries) + 2 * (self.hidden + keys) + 3 * (self.hidden + self.inner)
        return self.layers * rank * sides

    def row_bytes(self, tokens: int, itemsize: int) -> int:
        """One sampled row: its keys and values, and its logits in fp32 three times over."""
        return 2 * self.layers * self.kv_heads * self.head_dim * tokens * itemsize + 12 * self.vocabulary

    def token_bytes(self, checkpointing: bool, itemsize: int) -> int:
        """What the learner keeps of one token until its backward pass."""
        heads = (3 * self.heads + 4 * self.kv_heads) * self.head_dim
        layer = 2 * self.hidden + heads + 2 * self.inner
        kept = self.layers * (self.hidden if checkpointing else layer) + 2 * layer
        return kept * itemsize


class MemoryNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes. `least` is the minimum to run at all, with layers computed twice; `sampling` and `learning` are
    what must be free for the two halves of a round to have room to spare, and `takes` what they then use;
    `disk` is what has still to be written."""

    least: int
    sampling: int
    learning: int
    takes: int = 0
    disk: int = 0


def needs(
    shape: Shape,
    dtype: Dtype,
    *,
    stored_parameters: int | None = None,
    rank: int = 16,
    max_tokens: int = 96,
    disk: int = 0,
) -> MemoryNeeds:
    """The needs of a model in that format. `stored_parameters` counts what its files hold, if that is more than
    the model."""
    size = ITEMSIZE[dtype]
    stored = max(stored_parameters or 0, shape.parameters)
    merged = stored < MERGED_BELOW
    weights = (shape.parameters + (shape.linear_parameters if merged else 0)) * size
    adapter = 16 * shape.adapter_parameters(rank)
    sampling = weights + adapter + COMPLETIONS * shape.row_bytes(PROMPT_TOKENS + max_tokens, size)

    def learning(tokens: int, checkpointing: bool) -> int:
        return weights + adapter + int(tokens * shape.token_bytes(checkpointing, size) / ACTIVATION_SHARE)

    # the learner's own bounds on a processor (engines.torch_lora.learner)
    micro_batch = min(GOOD_TOKENS * shape.token_bytes(False, size), max(2**29, weights // 2))
    opening = int((2 if merged else 1.5) * stored * size)  # with less the engine refuses to open it
    return MemoryNeeds(
        least=max(opening, sampling, learning(LEAST_TOKENS, checkpointing=True)),
        sampling=sampling,
        learning=max(opening, sampling, learning(GOOD_TOKENS, checkpointing=False)),
        takes=max(weights + adapter + micro_batch, sampling),
        disk=disk,
    )


class FitVerdict(StrEnum):
    FITS = "fits"
    TIGHT = "tight"
    """It runs, computing layers twice instead of keeping them."""
    CROWDED = "crowded"
    """Would fit, but too much of the memory is in use now."""
    TOO_LARGE = "too large"
    NO_DISK = "no disk"


class MemoryRoom(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes: what an engine may use now, and what it could with nothing else open."""

    free: int
    most: int


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """`ok` if it can be downloaded and run now; `sentence` is for the owner."""

    verdict: FitVerdict
    sentence: str

    @property
    def ok(self) -> bool:
        return self.verdict in (FitVerdict.FITS, FitVerdict.TIGHT)


def fits(model: MemoryNeeds, memory: MemoryRoom, disk_free: int) -> Fit:
    """Whether a model can run here.

    >>> small, large = (MemoryNeeds(least=n, sampling=2, learning=4) for n in (3, 8 * 10**9))
    >>> fits(small, MemoryRoom(free=10**9, most=10**9), 10**12).verdict.value
    'fits'
    >>> fits(large, MemoryRoom(free=10**9, most=2 * 10**9), 0).sentence
    'It needs 8.0 GB of memory, and this computer can give 2.0 GB.'
    """
    if model.least > memory.most:
        verdict = FitVerdict.TOO_LARGE
        said = (
            f"It needs {in_bytes(model.least)} of memory, and this computer can give {in_bytes(memory.most)}."
        )
    elif model.disk and model.disk + DISK_SPARE > disk_free:
        verdict = FitVerdict.NO_DISK
        said = (
            f"It takes {in_bytes(model.disk)} of disk, and {in_bytes(disk_free)} are free: free up some space."
        )
    elif model.least > memory.free:
        verdict = FitVerdict.CROWDED
        said = (
            f"It needs {in_bytes(model.least)} of memory, and {in_bytes(memory.free)} are free now: close "
            "other programs."
        )
    elif model.learning > memory.free:
        verdict = FitVerdict.TIGHT
        said = (
            f"It runs, though slower: {in_bytes(model.learning)} of memory would be good, "
            f"{in_bytes(memory.free)} are free."
        )
    else:
        verdict = FitVerdict.FITS
        takes = in_bytes(model.takes or model.learning)
        said = f"It fits: it takes {takes} of memory, and {in_bytes(memory.free)} are free."
    return Fit(verdict=verdict, sentence=said)


def memory_here() -> MemoryRoom:
    """The computer's main memory. Does not look at a graphics card's own."""
    import psutil

    from engines.facts import container_room, free_ram

    share = free_ram() / max(1, min(psutil.virtual_memory().available, container_room()))
    return MemoryRoom(free=free_ram(), most=int(psutil.virtual_memory().total * share))


def likely_dtype(cpuinfo: Path = Path("/proc/cpuinfo")) -> Dtype:
    """The format the processor most likely computes in: bf16 only if it has instructions for it. The engine
    measures before it decides (engines.torch_lora.network.device)."""
    from engines.facts import fast_halves, features

    return "bfloat16" if fast_halves(features(cpuinfo)) else "float32"
