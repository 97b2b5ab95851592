"""Chooses the engine and number format for a computer and a model, and says why the others were not chosen.
Stores the results of trials.

Rules in order of weight: MLX on Apple Silicon and PyTorch on an NVIDIA card are far faster than everything else
there. On other processors llama.cpp samples large models faster, while for tiny ones its fixed costs exceed its
gain. In between, and wherever both were measured (`Trial`), the measurement decides."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from engines.contract import Kind
from engines.facts import LARGE_PARAMETERS, MB, Card, HardwareFacts, has_native_bf16
from engines.files import read_json, write_json

LLAMACPP_FROM_PARAMETERS = 300_000_000
"""Number of parameters from which llama.cpp is chosen on a processor if nothing has been measured yet. With the
adapter beside its weights it samples 135 M parameters slower than torch (6 and 12 tokens/s on two busy cores
with bf16), and 0.5 billion a little faster."""
F16_MAX_PARAMETERS = 300_000_000
"""Maximum parameters for which llama.cpp samples in 16 bits. With 64 rows that is as fast as 8 bits on AVX2, a
quarter faster on builds for AVX-512, and closer to the learner. Above, 8 bits need half the memory."""

OLDEST_DRIVERS = {11: 450, 12: 525, 13: 580}
"""CUDA major version to the oldest driver that supports it (NVIDIA's CUDA compatibility table)."""

_SHARE = 0.7
"""Share of the free memory that an engine may use; see engines.facts."""


class ModelSize(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of a model on which the choice depends."""

    name: str
    parameters: int


class EngineVerdict(msgspec.Struct, frozen=True):
    """One way to run a model, whether it is usable here, and the reason. Names are those of `./shoal doctor`:
    torch appears as torch-cuda, torch-mps and torch-cpu."""

    name: str
    usable: bool
    reason: str


class EngineChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a choice. `way` is the name of the chosen verdict and `engine` the engine that runs it,
    both "" if none is usable. `needs_mb` is a lower bound: the weights and the sampler's copy, without
    activations."""

    engine: str
    way: str
    reason: str
    dtype: str
    needs_mb: int
    free_mb: int
    engines: tuple[EngineVerdict, ...]


def choose(
    facts: HardwareFacts,
    size: ModelSize,
    problem: Callable[[str], str],
    rounds_per_hour: Mapping[str, float] | None = None,
) -> EngineChoice:
    """Chooses how to run a model. `problem` returns why "torch", "llamacpp" or "mlx" cannot run ("" if it can);
    `rounds_per_hour` holds what was measured with this model on this computer, by engine."""
    judged = {one.name: one for one in judge_engines(facts, size, problem)}
    measured = dict(rounds_per_hour or {})
    order = _order(facts, size, measured)
    way = next((name for name in order if judged[name].usable), "")
    if way:
        reason = " ".join([_why(way, facts, size, measured), *_passed(order, way, judged)])
    else:
        reason = " ".join(
            [f"No engine can run {size.name} on this computer.", *(judged[name].reason for name in order)]
        )
    told = tuple(
        one
        if not one.usable or one.name == way
        else EngineVerdict(one.name, True, _why_not(one.name, way, facts, size, measured))
        for one in judged.values()
    )
    return EngineChoice(
        engine=engine_of(way),
        way=way,
        reason=reason,
        dtype=expected_dtype(way, facts, size),
        needs_mb=needs_mb(way, facts, size),
        free_mb=_room_mb(way, facts),
        engines=told,
    )


def engine_of(way: str) -> str:
    """Returns the engine that a way belongs to.
    >>> engine_of("torch-cuda"), engine_of("mlx"), engine_of("")
    ('torch', 'mlx', '')
    """
    return way.partition("-")[0]


def judge_engines(facts: HardwareFacts, size: ModelSize, problem: Callable[[str], str]) -> list[EngineVerdict]:
    """Returns a verdict for every way to run, in a fixed order."""
    ways = {
        "torch-cuda": problem("torch") or cuda_problem(facts),
        "torch-mps": problem("torch") or mps_problem(facts),
        "torch-cpu": problem("torch"),
        "llamacpp": problem("llamacpp") or llamacpp_problem(facts),
        "mlx": problem("mlx"),
    }
    return [
        EngineVerdict(way, not reason, reason or _runs(way, facts))
        for way, no in ways.items()
        for reason in [no or memory_problem(way, facts, size)]
    ]


def cuda_problem(facts: HardwareFacts) -> str:
    """Returns a sentence that says why torch cannot use an NVIDIA card, "" if it can."""
    if facts.driver_problem:
        return facts.driver_problem
    if not facts.cards:
        return "There is no NVIDIA card with a driver here."
    if not facts.cuda:
        return f"This build of PyTorch has no CUDA, so {facts.cards[0].name} isn't used."
    return driver_problem(facts.cuda, facts.driver) or card_problem(facts.cuda, facts.cards)


def card_problem(cuda: str, cards: Sequence[Card]) -> str:
    """Returns a sentence if PyTorch's build for a CUDA version has no code for any of the cards, "" if it has:
    from CUDA 12.8 on it begins with Turing (PyTorch 2.7's release notes), whatever the driver takes.

    >>> old, new = (Card(name=f"sm {n}", memory_mb=8000, free_mb=8000, capability=(n, 1)) for n in (6, 8))
    >>> card_problem("13.0", [old, new]), card_problem("12.6", [old])
    ('', '')
    >>> card_problem("13.0", [old])
    'sm 6 is too old for this build of PyTorch, which needs compute capability 7.5: the processor is used.'
    """
    least = (7, 5) if _pair(cuda) >= (12, 8) else (5, 0)
    if any(card.capability >= least for card in cards):
        return ""
    return (
        f"{cards[0].name} is too old for this build of PyTorch, which needs compute capability "
        f"{least[0]}.{least[1]}: the processor is used."
    )


def driver_problem(cuda: str, driver: str) -> str:
    """Returns a sentence if the driver is too old for a CUDA version, "" if it is not.

    >>> driver_problem("13.0", "580.65.06"), driver_problem("12.8", "535.104.05")
    ('', '')
    >>> driver_problem("13.0", "535.104.05")
    'The NVIDIA driver 535.104.05 is too old for CUDA 13.0: install 580 or newer and restart the computer.'
    """
    needed = OLDEST_DRIVERS.get(_number(cuda), max(OLDEST_DRIVERS.values()))
    if _number(driver) >= needed:
        return ""
    return (
        f"The NVIDIA driver {driver or 'found'} is too old for CUDA {cuda}: install {needed} or newer and "
        "restart the computer."
    )


def mps_problem(facts: HardwareFacts) -> str:
    return "" if facts.apple_silicon else "Metal (MPS) exists on Macs with Apple Silicon only."


def llamacpp_problem(facts: HardwareFacts) -> str:
    """Returns a sentence that says why llama.cpp cannot run here, "" if it can."""
    if facts.system == "linux" and facts.glibc and _pair(facts.glibc) < (2, 28):
        return f"llama.cpp needs glibc 2.28 and this system has {facts.glibc}: use a newer system."
    return ""


def memory_problem(way: str, facts: HardwareFacts, size: ModelSize) -> str:
    """Returns a sentence if the model does not fit into the free memory, "" if it does."""
    needed, room = needs_mb(way, facts, size), _room_mb(way, facts)
    if needed <= room:
        return ""
    if way == "torch-cuda" and facts.cards:
        return (
            f"{size.name} needs {needed:,} MB and {room:,} MB are free on {facts.cards[0].name}: "
            "close other programs or choose a smaller model."
        )
    return (
        f"{size.name} needs {needed:,} MB and {room:,} MB are free: "
        "close other programs or choose a smaller model."
    )


def needs_mb(way: str, facts: HardwareFacts, size: ModelSize) -> int:
    """Returns the MB of the weights and of the sampler's copy: torch merges into a second copy, llama.cpp has
    its own, MLX needs none."""
    if not way:
        return 0
    bytes_each = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0}[expected_dtype(way, facts, size)]
    in_llama = SAMPLER_BYTES[sampler_kind(size.parameters)]
    sampling = {"llamacpp": in_llama, "mlx": 0.0}.get(way, bytes_each)
    return round(size.parameters * (bytes_each + sampling) / MB)


SAMPLER_BYTES: Mapping[Kind, float] = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "q8_0": 34 / 32}
"""Bytes per weight of llama.cpp's number formats; q8_0 has a scale for every 32 weights."""


def sampler_kind(parameters: int) -> Kind:
    """Returns the number format in which llama.cpp samples from a model of this size.

    >>> sampler_kind(2 * 10**6), sampler_kind(135 * 10**6), sampler_kind(5 * 10**8)
    ('f32', 'f16', 'q8_0')
    """
    if parameters < LARGE_PARAMETERS:
        return "f32"
    return "f16" if parameters <= F16_MAX_PARAMETERS else "q8_0"


def expected_dtype(way: str, facts: HardwareFacts, size: ModelSize) -> str:
    """Returns the expected number format of the learner's weights; the engine measures before it decides."""
    if not way:
        return ""
    if way == "torch-cuda":
        return "bfloat16" if facts.cards and facts.cards[0].capability >= (8, 0) else "float32"
    if way == "mlx":
        return "bfloat16" if facts.apple_silicon else "float32"
    large = way != "torch-mps" and size.parameters >= LARGE_PARAMETERS
    return "bfloat16" if large and has_native_bf16(facts.features) else "float32"


def _order(facts: HardwareFacts, size: ModelSize, measured: Mapping[str, float]) -> list[str]:
    """Returns the ways that may be chosen automatically, best first. MLX is only for Apple's chips; elsewhere
    it must be requested by name."""
    if facts.apple_silicon:
        return ["mlx", "torch-mps", "torch-cpu"]
    ways = (
        ["torch-cpu", "llamacpp"] if size.parameters < LLAMACPP_FROM_PARAMETERS else ["llamacpp", "torch-cpu"]
    )
    if all(engine_of(way) in measured for way in ways):
        ways.sort(key=lambda way: -measured[engine_of(way)])
    return ["torch-cuda", *ways]


def _runs(way: str, facts: HardwareFacts) -> str:
    match way:
        case "torch-cuda":
            return f"PyTorch with CUDA {facts.cuda} runs on {', '.join(card.name for card in facts.cards)}."
        case "torch-mps":
            return "PyTorch runs on this Mac's graphics through Metal (MPS)."
        case "torch-cpu":
            return f"PyTorch {facts.packages.get('torch', '')} runs on this processor."
        case "llamacpp":
            return "llama.cpp samples on this processor, and PyTorch learns."
        case _:
            return f"MLX runs on this computer ({facts.cpu})."


def _why(way: str, facts: HardwareFacts, size: ModelSize, measured: Mapping[str, float]) -> str:
    engine = engine_of(way)
    if way in ("torch-cpu", "llamacpp") and engine in measured and len(measured) > 1:
        return f"{_runs(way, facts)} Measured here with {size.name}: {measured[engine]:.0f} rounds an hour."
    if way == "torch-cpu" and size.parameters < LLAMACPP_FROM_PARAMETERS:
        return f"{_runs(way, facts)} No other engine is faster with a model as small as {size.name}."
    return _runs(way, facts)


def _why_not(way: str, taken: str, facts: HardwareFacts, size: ModelSize, measured: Mapping[str, float]) -> str:
    """Returns why a usable way was not chosen."""
    if engine_of(way) in measured and engine_of(taken) in measured and way in ("torch-cpu", "llamacpp"):
        return (
            f"{_runs(way, facts)} Measured here with {size.name}: {measured[engine_of(way)]:.0f} rounds an "
            f"hour, and {measured[engine_of(taken)]:.0f} with the chosen engine."
        )
    if way == "mlx":
        return "MLX is for Apple Silicon; on this computer it is for tests, so it is taken by name only."
    if way == "llamacpp" and taken == "torch-cpu":
        return (
            f"{_runs(way, facts)} For a model as small as {size.name} its fixed costs are larger than its gain."
        )
    if taken == "torch-cuda":
        return f"{_runs(way, facts)} The graphics card is faster."
    if taken == "mlx":
        return f"{_runs(way, facts)} MLX is faster on Apple Silicon."
    return f"{_runs(way, facts)} {_LEADS.get(taken, 'The chosen engine')} is faster."


_LEADS = {"llamacpp": "llama.cpp", "torch-mps": "The graphics of this Mac", "torch-cpu": "PyTorch"}


def _passed(order: list[str], way: str, judged: Mapping[str, EngineVerdict]) -> list[str]:
    """Returns the reasons why the preferred ways before the chosen one cannot be used."""
    return [judged[name].reason for name in order[: order.index(way)]]


def _room_mb(way: str, facts: HardwareFacts) -> int:
    if way == "torch-cuda":
        return round(facts.cards[0].free_mb * 0.9) if facts.cards else 0
    return round(facts.free_mb * _SHARE)


def _number(version: str) -> int:
    head = version.partition(".")[0]
    return int(head) if head.isdigit() else 0


def _pair(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return _number(major), _number(minor)


TRIALS_FILE = "trials.json"
_KEPT = 50
"""Maximum results kept; the oldest are dropped."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """Result of playing some rounds with one engine and one model. `memory_mb` is the memory of its process."""

    engine: str
    dtype: str
    device: str
    rounds_per_hour: float
    memory_mb: int


class _TrialFile(msgspec.Struct, frozen=True, kw_only=True):
    at: float
    trials: dict[str, Trial]


def trial_key(fingerprint: str, facts: HardwareFacts) -> str:
    """Returns 16 hexadecimal digits that identify the model (`fingerprint` from engines.models.folder), this
    hardware and these package versions."""
    parts = (
        fingerprint,
        facts.system,
        facts.machine,
        facts.cpu,
        str(facts.cores),
        str(facts.memory_mb // 1024),
        facts.driver,
        *(card.name for card in facts.cards),
        *(f"{name} {version}" for name, version in sorted(facts.packages.items())),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def load_trials(home: Path, key: str) -> dict[str, Trial]:
    """Returns the stored trials by engine; empty if nothing was measured, or the file was deleted or is
    damaged."""
    kept = _read(home).get(key)
    return kept.trials if kept else {}


def save_trials(home: Path, key: str, trials: dict[str, Trial]) -> None:
    """Stores trials under this key, replacing older ones of the same engines. Raises OSError."""
    known = _read(home)
    before = known.get(key)
    known[key] = _TrialFile(at=time.time(), trials={**(before.trials if before else {}), **trials})
    newest = dict(sorted(known.items(), key=lambda pair: -pair[1].at)[:_KEPT])
    write_json(home / TRIALS_FILE, newest)


def _read(home: Path) -> dict[str, _TrialFile]:
    return read_json(home / TRIALS_FILE, dict[str, _TrialFile]) or {}
