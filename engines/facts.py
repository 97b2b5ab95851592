"""The facts about this computer on which the choice of an engine depends. Loads no model library."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil

from engines.container import cpu_quota, memory_left
from engines.remedy import repair_phrase


class EngineEntry(NamedTuple):
    title: str
    package: str
    """The module with `open_engine` and, if it cannot run everywhere, `why_unavailable`."""
    library: str
    """The library that the package needs: checking that it exists takes a millisecond, importing the package a
    second."""
    distributions: tuple[str, ...]
    """Distributions whose versions affect the engine's speed."""


ENGINES = {
    "torch": EngineEntry("PyTorch", "engines.torch_lora", "torch", ("torch",)),
    "llamacpp": EngineEntry("llama.cpp", "engines.llamacpp", "llama_cpp", ("llama-cpp-python",)),
    "mlx": EngineEntry("MLX", "engines.mlx_lora", "mlx", ("mlx", "mlx-lm")),
}


MB = 2**20

LARGE_PARAMETERS = 50_000_000
"""Number of parameters from which a model is large to an engine: its weights are in 16 bits where the hardware
computes with them, and on a processor its adapter has rank 8 and stays beside the weights. A smaller one is in
fp32, at rank 16, and merged into a copy for sampling."""


def free_ram() -> int:
    """Returns the bytes an engine may use now: 70 % of the free memory, so that other programs keep some."""
    return int(min(psutil.virtual_memory().available, memory_left()) * 0.7)


PACKAGES = (*(name for engine in ENGINES.values() for name in engine.distributions), "gguf", "transformers")
"""Distributions whose versions affect an engine's speed."""

CPU_FEATURES = ("avx2", "fma", "f16c", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "bf16", "i8mm")
"""Processor features that matter: without AVX2 and the like llama.cpp must be built on this computer, and the
bf16 ones make bf16 arithmetic run at full speed."""

VISIBLE_CARDS_ENV = "CUDA_VISIBLE_DEVICES"
"""Environment variable of CUDA that names the cards a program may use: none if it is empty or -1."""

_WAITING = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "2000"}
"""Threads that compute together spin for a tenth of a millisecond while they wait for each other, then sleep.
By default OpenMP spins for milliseconds, which made a busy machine five times slower. With its passive policy,
which sleeps immediately, each of the many barriers of a token costs two thread switches: 135 M parameters then
took 1.3 to 2.5 times as long on two idle cores, and no less on busy ones (app/lab/LOG.md)."""

_WINDOWS_AVX2 = 40  # PF_AVX2_INSTRUCTIONS_AVAILABLE


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """An NVIDIA card. `capability` is CUDA's compute capability, (8, 0) for Ampere."""

    name: str
    memory_mb: int
    free_mb: int
    capability: tuple[int, int]


class HardwareFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of one computer. Sizes in MB (2**20 bytes). Fields for things the computer does not have are
    empty."""

    system: str
    machine: str
    cpu: str
    cores: int
    features: tuple[str, ...]
    memory_mb: int
    free_mb: int
    glibc: str
    cards: tuple[Card, ...]
    driver: str
    driver_problem: str
    cuda: str
    """The CUDA version that torch was built for."""
    packages: dict[str, str]
    """Name to version of the installed distributions of PACKAGES."""

    @property
    def apple_silicon(self) -> bool:
        return self.system == "darwin" and self.machine == "arm64"


def gather_facts() -> HardwareFacts:
    """Collects the facts of this computer."""
    cards, driver, problem = _nvidia()
    return HardwareFacts(
        system=sys.platform,
        machine=platform.machine().replace("AMD64", "x86_64").replace("aarch64", "arm64"),
        cpu=cpu_name(),
        cores=cores(),
        features=features(),
        memory_mb=psutil.virtual_memory().total // MB,
        free_mb=min(psutil.virtual_memory().available, memory_left()) // MB,
        glibc=platform.libc_ver()[1] if sys.platform == "linux" else "",
        cards=cards,
        driver=driver,
        driver_problem=problem,
        cuda=_torch_cuda(),
        packages={name: version for name in PACKAGES if (version := package_version(name))},
    )


def cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return _sysctl("machdep.cpu.brand_string") or platform.processor() or platform.machine()


def cores() -> int:
    """Returns the number of physical cores that this process may use, at least 1."""
    return usable(psutil.cpu_count(logical=False) or os.cpu_count() or 1)


def usable(processors: int) -> int:
    """Returns how many of the `processors` this process may use: those it is bound to, and whole ones of a
    container's share of their time."""
    if hasattr(os, "sched_getaffinity"):
        processors = min(processors, len(os.sched_getaffinity(0)))
    return max(1, int(min(processors, cpu_quota())))


def engine_variables() -> dict[str, str]:
    """Returns the environment variables of every process that computes, to be set before it loads torch, numpy
    or llama.cpp: how threads wait."""
    return dict(_WAITING)


def set_engine_variables() -> None:
    """Sets `engine_variables` in this process where they are not set already."""
    for name, value in engine_variables().items():
        os.environ.setdefault(name, value)


def features(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, ...]:
    """Returns the processor features among CPU_FEATURES."""
    words: set[str] = set()
    if sys.platform == "linux":
        try:
            text = cpuinfo.read_text(errors="replace")
        except OSError:
            text = ""
        if found := re.search(r"^(flags|Features)\s*: (.*)$", text, re.MULTILINE):
            words = set(found[2].split())
    elif sys.platform == "darwin":
        known = " ".join(_sysctl(f"machdep.cpu.{name}") for name in ("features", "leaf7_features")).lower()
        words = set(known.split())
        if platform.machine() == "arm64":
            words |= {"asimd"} | ({"bf16"} if _sysctl("hw.optional.arm.FEAT_BF16") == "1" else set())
    elif sys.platform == "win32" and ctypes.windll.kernel32.IsProcessorFeaturePresent(_WINDOWS_AVX2):
        words = {"avx2", "fma", "f16c"}  # no processor has the first without the others
    return tuple(name for name in CPU_FEATURES if name in words)


def has_native_bf16(features: Sequence[str]) -> bool:
    """Returns whether a processor with these features computes in bf16 natively; others emulate it, some ten
    times slower."""
    return not {"avx512_bf16", "amx_bf16", "bf16"}.isdisjoint(features)


def _sysctl(name: str) -> str:
    if sys.platform != "darwin":
        return ""
    done = subprocess.run(["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True)
    return done.stdout.strip()


def has_nvidia_driver() -> bool:
    """Returns whether an NVIDIA driver is installed. Looks at files only, which wakes no card."""
    if sys.platform == "win32":
        return Path("C:/Windows/System32/nvml.dll").exists()
    return Path("/proc/driver/nvidia/gpus").is_dir() or Path("/dev/nvidiactl").exists()


def _nvidia() -> tuple[tuple[Card, ...], str, str]:
    """Returns the cards, the driver version, and a sentence if there is a driver that does not answer."""
    if not has_nvidia_driver():
        return (), "", ""
    if os.environ.get(VISIBLE_CARDS_ENV, "0").strip() in ("", "-1"):
        return (), "", f"{VISIBLE_CARDS_ENV} hides every NVIDIA card from it."
    try:
        import pynvml
    except ImportError:
        return (), "", f"The library that asks NVIDIA's driver is missing: {repair_phrase()}."
    try:
        pynvml.nvmlInit()
        try:
            cards = []
            for number in range(pynvml.nvmlDeviceGetCount()):
                card = pynvml.nvmlDeviceGetHandleByIndex(number)
                memory = pynvml.nvmlDeviceGetMemoryInfo(card)
                major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(card)
                cards.append(
                    Card(
                        name=str(pynvml.nvmlDeviceGetName(card)),
                        memory_mb=int(memory.total) // MB,
                        free_mb=int(memory.free) // MB,
                        capability=(int(major), int(minor)),
                    )
                )
            return tuple(cards), str(pynvml.nvmlSystemGetDriverVersion()), ""
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        return (), "", f"NVIDIA's driver doesn't answer ({error}): restart the computer or install it again."


def _torch_cuda() -> str:
    """Returns torch's CUDA version, read from its version file, because importing torch takes most of a
    second."""
    found = importlib.util.find_spec("torch")
    for folder in (found.submodule_search_locations or []) if found else []:
        try:
            text = (Path(folder) / "version.py").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if number := re.search(r"^cuda\b.*?= *['\"]([0-9.]+)['\"]", text, re.MULTILINE):
            return number[1]
    return ""


def package_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
