"""`./shoal doctor`: this computer, and which engine would run on it, with the reason for every other one."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import shutil
import sys
from pathlib import Path

import msgspec

from app import home
from app.desktop import Gatherer, Row

SUMMARY = "tell what this computer has, which engine runs on it and why not another"

PACKAGES = ("torch", "transformers", "peft", "safetensors", "tokenizers", "numpy", "reasoning-gym")

FACTS = {
    "idle_s": "time without input",
    "on_battery": "on battery",
    "saver": "battery saver",
    "full_screen": "full-screen program",
    "exclusive_app": "program of your list",
    "cpu_others": "processor used by others",
    "gpu_others": "graphics card used by others",
    "memory_free": "memory free",
    "memory_stalled": "time lost to short memory",
    "temperature_c": "temperature",
    "too_hot": "too hot by the system's word",
}
_SOURCES_S = 3.0

MB = 2**20


class Judged(msgspec.Struct, frozen=True):
    """One engine, whether it can run here, and why (not)."""

    name: str
    usable: bool
    reason: str


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """All that doctor says. Sizes in MB (2**20 bytes); `engine` is empty when none is usable."""

    engine: str
    reason: str
    engines: list[Judged]
    cpu: dict[str, str | int]
    memory: dict[str, int]
    disk: dict[str, str | int]
    python: dict[str, str]
    packages: dict[str, str | None]
    sources: list[Row]
    """What the rules of `run --rules` go by: every fact, from whom, and why it is unknown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--home", type=Path, help="the data folder whose disk is looked at")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def main(args: argparse.Namespace) -> int:
    """Exit code 1 when no engine can run here."""
    findings = examine(args.home)
    if args.json:
        print(msgspec.json.encode(findings).decode())
    else:
        _show(findings)
    if not findings.engine:
        print(f"shoal doctor: {findings.reason}", file=sys.stderr)
    return 0 if findings.engine else 1


def examine(data: Path | None) -> Findings:
    """Looks at everything. Loads torch, which takes seconds: nothing else of this program does so here."""
    engines = [*_torch(), *_not_built()]
    chosen, reason = choose(engines)
    return Findings(
        engine=chosen,
        reason=reason,
        engines=engines,
        cpu=_cpu(),
        memory=_memory(),
        disk=_disk(home.home(data)),
        python={
            "version": platform.python_version(),
            "executable": sys.executable,
            "system": platform.platform(),
        },
        packages={name: _version(name) for name in PACKAGES},
        sources=_sources(),
    )


def choose(engines: list[Judged]) -> tuple[str, str]:
    """The first usable engine, in the order given, with a sentence that also says why those before it were
    passed over. An empty name when there is none."""
    passed: list[str] = []
    for engine in engines:
        if engine.usable:
            return engine.name, " ".join([engine.reason, *passed])
        passed.append(engine.reason)
    return "", "No engine can run on this computer. " + " ".join(passed)


def _torch() -> list[Judged]:
    names = ("torch-cuda", "torch-mps", "torch-cpu")
    try:
        import torch
    except (ImportError, OSError) as error:
        said = " ".join(str(error).split())[:200]
        return [Judged(name, False, f"PyTorch does not load ({said}); run ./shoal setup.") for name in names]
    return [
        Judged(
            "torch-cuda", *judge_cuda(torch.version.cuda, torch.cuda.is_available(), _graphics_cards(torch))
        ),
        Judged("torch-mps", *judge_mps(sys.platform, platform.machine(), torch.backends.mps.is_available())),
        Judged("torch-cpu", True, f"PyTorch {torch.__version__} runs on this processor."),
    ]


def _graphics_cards(torch: object) -> list[str]:
    cuda = torch.cuda  # type: ignore[attr-defined]
    return (
        [cuda.get_device_name(number) for number in range(cuda.device_count())] if cuda.is_available() else []
    )


def judge_cuda(built_for: str | None, available: bool, cards: list[str]) -> tuple[bool, str]:
    """Whether torch can use an NVIDIA card, and the sentence. `built_for` is the CUDA version torch was built
    with."""
    if built_for is None:
        return False, "This build of PyTorch has no CUDA, so NVIDIA cards are not used."
    if not available:
        return (
            False,
            f"PyTorch is built for CUDA {built_for}, but finds no NVIDIA card with a driver that suits it.",
        )
    return True, f"PyTorch with CUDA {built_for} runs on {', '.join(cards)}."


def judge_mps(system: str, machine: str, available: bool) -> tuple[bool, str]:
    """The same for Apple's graphics."""
    if system != "darwin" or machine != "arm64":
        return False, "Metal (MPS) exists on Macs with Apple Silicon only."
    if not available:
        return False, "Metal (MPS) needs macOS 14 or newer."
    return True, "PyTorch runs on this Mac's graphics through Metal (MPS)."


def _not_built() -> list[Judged]:
    return [
        Judged("llamacpp", False, "The llama.cpp engine is not built into this version of Shoal."),
        Judged("mlx", False, "The MLX engine is not built into this version of Shoal."),
    ]


def _cpu() -> dict[str, str | int]:
    import psutil

    logical = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else logical
    return {
        "name": _cpu_name(),
        "cores": psutil.cpu_count(logical=False) or logical,
        "threads": logical,
        "usable_threads": usable,
    }


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory() -> dict[str, int]:
    import psutil

    memory = psutil.virtual_memory()
    return {"total_mb": memory.total // MB, "available_mb": memory.available // MB}


def _disk(folder: Path) -> dict[str, str | int]:
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return {"home": str(folder), "free_mb": shutil.disk_usage(there).free // MB}


def _sources() -> list[Row]:
    gatherer = Gatherer()
    try:
        gatherer.start(_SOURCES_S)
        return list(gatherer.rows())
    finally:
        gatherer.close()


def told(row: Row) -> str:
    """One fact for people.

    >>> told(Row(field="idle_s", source="input idle time (X11)", value=12.3, absent=False, why=""))
    '12 s (input idle time (X11))'
    >>> told(Row(field="saver", source="battery saver", value=None, absent=False, why="Nobody answers."))
    'unknown, so it counts as in use: Nobody answers.'
    """
    if row.absent:
        return f"none here ({row.source})"
    if row.value is None:
        return f"unknown, so it counts as in use: {row.why}"
    match row.value:
        case bool():
            said = "yes" if row.value else "no"
        case str():
            said = row.value or "none"
        case _ if row.field == "idle_s":
            said = f"{row.value:.0f} s"
        case _ if row.field == "temperature_c":
            said = f"{row.value:.0f} °C"
        case _:
            said = f"{100 * row.value:.0f} %"
    return f"{said} ({row.source})"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _show(findings: Findings) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    cpu, memory, disk = findings.cpu, findings.memory, findings.disk
    table.add_row("Engine", findings.engine or "none")
    for engine in findings.engines:
        table.add_row(f"  {engine.name}", ("usable: " if engine.usable else "not usable: ") + engine.reason)
    table.add_row("Processor", f"{cpu['name']}, {cpu['cores']} cores, {cpu['usable_threads']} usable threads")
    table.add_row("Memory", f"{memory['available_mb']:,} of {memory['total_mb']:,} MB free")
    table.add_row("Data", f"{disk['home']}, {disk['free_mb']:,} MB free")
    table.add_row("Python", f"{findings.python['version']} on {findings.python['system']}")
    table.add_row(
        "Packages", ", ".join(f"{name} {version or 'missing'}" for name, version in findings.packages.items())
    )
    for place, row in enumerate(findings.sources):
        table.add_row("Facts" if not place else "", f"{FACTS.get(row.field, row.field)}: {told(row)}")
    console.print(table, highlight=False, markup=False)
