"""Opens an engine by name. An engine's package is imported only when needed: each loads its own library, and
most computers lack some of them."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Unpack

from engines import choice as trials
from engines import facts as computer
from engines.choice import EngineChoice, ModelSize, choose
from engines.contract import Engine, EngineError, EngineOptions
from engines.facts import ENGINES
from engines.models.folder import count_parameters, fingerprint, open_folder
from engines.remedy import command, installed, repair_phrase
from engines.sound import explaining_model_errors

AUTO = "auto"

ENGINE_CHOICES = (AUTO, *ENGINES)

HOME_ENV = "SHOAL_HOME"
"""Environment variable: the data folder, where results of trials are stored."""

BUILD_STATUS_FILE = "shoal-llamacpp.says"
"""File in the Python environment, written by the build of llama.cpp: one sentence on its progress or
failure."""


def why_unavailable(name: str) -> str:
    """Returns one sentence that says why this engine cannot run here and what to do; "" if it can. Loads the
    engine's library, but no model. Raises EngineError for an unknown name."""
    _check(name)
    if reason := why_not_installed(name):
        return reason
    try:
        package = _package(name)
        # The torch engine runs wherever its package loads.
        return str(package.why_unavailable()) if hasattr(package, "why_unavailable") else ""
    except Exception as error:  # an incomplete library, or one for another processor, may raise anything
        said = " ".join(str(error).split()).rstrip(".")[:200] or type(error).__name__
        return f"The {ENGINES[name].title} engine doesn't load ({said}): {repair_phrase(name)}."


def why_not_installed(name: str) -> str:
    """Like `why_unavailable`, but only checks that the engine's library is installed, without loading it."""
    if importlib.util.find_spec(ENGINES[name].library) is not None:
        return ""
    match name:
        case "torch":
            return f"PyTorch isn't installed: {repair_phrase(note=', which repairs the installation')}."
        case "mlx":
            if installed():
                return "MLX isn't installed. It is for Macs with Apple Silicon; the engine pack there has it."
            return (
                f"MLX isn't installed. It is for Macs with Apple Silicon; {command('setup')} installs it there."
            )
    try:
        said = (Path(sys.prefix) / BUILD_STATUS_FILE).read_text(encoding="utf-8").strip()
    except OSError:
        said = ""
    return said or f"llama.cpp isn't installed: {repair_phrase('llamacpp', ', which builds it')}."


def open_engine(name: str, model: str | Path, *, seed: int = 0, **options: Unpack[EngineOptions]) -> Engine:
    """Opens the engine of that name, or with "auto" the one that suits this computer and the model. The other
    arguments are those of every engine's own `open_engine`.

    Raises EngineError. A named engine that cannot run is never replaced by another one; one that was chosen
    automatically is, and its `notes` say so."""
    with explaining_model_errors(model):
        if name == AUTO:
            return _open_chosen(model, seed, options)
        if reason := why_unavailable(name):
            raise EngineError(reason)
        engine: Engine = _package(name).open_engine(model, seed=seed, **options)
        return engine


def _open_chosen(model: str | Path, seed: int, options: EngineOptions) -> Engine:
    """Opens the best engine; if that fails, the next."""
    problems: dict[str, str] = {}
    while True:
        engine = choice(model, lambda name: problems.get(name) or why_not_installed(name)).engine or "torch"
        if engine in problems:
            raise EngineError(problems[engine])
        try:
            if reason := why_unavailable(engine):
                raise EngineError(reason)
            opened: Engine = _package(engine).open_engine(model, seed=seed, **options)
        except EngineError as error:
            if engine == "torch":
                raise
            problems[engine] = str(error)
            continue
        notes: list[str] = getattr(opened, "notes", [])
        notes += [f"{reason} {ENGINES[engine].title} takes its place." for reason in problems.values()]
        return opened


def choice(
    model: str | Path, problem: Callable[[str], str] = why_unavailable, home: Path | None = None
) -> EngineChoice:
    """Returns which engine suits this computer and a model, by the rules and by measured trials. Raises
    EngineError for a model that cannot be read."""
    folder = open_folder(Path(model))
    home = home or (Path(os.environ[HOME_ENV]) if os.environ.get(HOME_ENV) else None)
    facts = computer.gather_facts()
    size = ModelSize(name=folder.name, parameters=count_parameters(folder))
    known = trials.load_trials(home, trials.trial_key(fingerprint(folder), facts)) if home else {}
    return choose(facts, size, problem, {name: trial.rounds_per_hour for name, trial in known.items()})


def bf16_is_faster() -> bool:
    """Returns whether torch measured bf16 as faster than fp32 on this processor; if not, bf16 is emulated."""
    return bool(importlib.import_module("engines.torch_lora.network.device").bf16_is_faster(1))


_LLAMACPP = ("AVX512_BF16", "AVX512", "AVX2", "AVX", "NEON")


def instructions() -> dict[str, str]:
    """Returns the instruction set that each loaded library uses, by engine name. For llama.cpp it is the most
    advanced one it was built with."""
    said = {}
    if torch := sys.modules.get("torch"):
        bf16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()  # oneDNN's, by which bf16 is multiplied
        said["torch"] = torch.backends.cpu.get_cpu_capability() + " with bf16" * bool(bf16)
    if llama := sys.modules.get("llama_cpp.llama_cpp"):
        words = llama.llama_print_system_info().decode("ascii", "replace").split(" | ")
        said["llamacpp"] = next((name for name in _LLAMACPP if f"{name} = 1" in words), "no vectors")
    return said


def preload(name: str) -> None:
    """Imports what opening that engine will most likely need. This takes seconds and can overlap with other
    work."""
    if name == AUTO:
        name = "mlx" if sys.platform == "darwin" and not why_not_installed("mlx") else "torch"
    importlib.import_module(ENGINES.get(name, ENGINES["torch"]).package)


def _check(name: str) -> None:
    if name not in ENGINES:
        raise EngineError(f"There is no engine {name!r}: choose {', '.join(ENGINE_CHOICES)}.")


def _package(name: str) -> ModuleType:
    _check(name)
    return importlib.import_module(ENGINES[name].package)
