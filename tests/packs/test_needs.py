"""What engine packs hold, against what the code that runs with them imports."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTS = ROOT / "packaging" / "requirements"
HEAVY = (
    "app.node.trainer.process",
    "app.sapo.scoring.child",
    "app.sapo.library",
    "engines.torch_lora",
    "engines.llamacpp",
    "app.cli.__main__",
    "app.cli.doctor",
    "app.cli.chat",
    "app.cli.puzzle",
    "app.cli.export",
    "app.cli.trial",
    "app.cli.lab",
)
"""What packaging/frozen/entry.py hands over, and what is imported by a name in a string."""
SAID = {
    "matplotlib": "./shoal lab leaves its picture out and says so",
    "transformers": "the engine and the tokenizer refuse such a model with a sentence",
    "peft": "only beside transformers",
    "PySide6": "a command speaks English",
}
"""Imported, and not there: what then happens."""
UNUSED = {
    "networkx": "PyTorch's compiler",
    "setuptools": "PyTorch's compiler",
    "requests": "gguf's way to remote files",
    "hf-xet": "huggingface-hub's second protocol",
    "cellpylib": "app.sapo.library stands in for it",
    "pycosat": "app.sapo.library stands in for it",
    "tzdata": "time zones, of which no family of puzzles asks",
    "zss": "app.sapo.library stands in for it",
}
"""Named as needs by packages, and not there: whose code that is."""


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(*files: str) -> set[str]:
    lines = [line for file in files for line in (LISTS / file).read_text(encoding="utf-8").splitlines()]
    return {plain(found[0]) for line in lines if (found := re.match(r"[A-Za-z0-9._-]+", line))}


def test_everything_that_heavy_processes_import_is_in_the_pack() -> None:
    grimp = pytest.importorskip("grimp", reason="grimp, which comes with import-linter, is not installed")
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed, so nothing tells whose it is")
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    graph = grimp.build_graph("app", "engines", include_external_packages=True, cache_dir=None)
    reached = {module for start in HEAVY for module in graph.find_upstream_modules(start)}
    outside = {name for name in reached if graph.is_module_squashed(name)} - set(sys.stdlib_module_names)
    assert {"torch", "reasoning_gym", "safetensors", "numpy", "gguf"} <= outside | {"reasoning_gym"}
    whose = importlib.metadata.packages_distributions()
    missing = {
        name
        for name in outside
        if name not in SAID and not {plain(one) for one in whose.get(name, ())} & names("pack.txt")
    }
    assert not missing, f"add it to packaging/requirements/pack.txt, or say in SAID what happens: {missing}"
    assert SAID.keys() <= outside


CUDA = ("nvidia-", "cuda-", "triton")
"""What the build of torch for NVIDIA cards needs; a pack holds the one for processors."""


def test_what_the_packages_themselves_need_is_in_the_pack() -> None:
    listed, missing = names("pack.txt"), set()
    for name in listed:
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # of another system, or llama.cpp where it is not built
        for need in needs:
            said, _, marker = need.partition(";")
            if "extra" in marker or "== 'emscripten'" in marker:
                continue
            found = re.match(r"[A-Za-z0-9._-]+", said)
            assert found is not None
            if plain(found[0]).startswith(CUDA):
                continue
            if plain(found[0]) not in listed and importable(marker):
                missing.add(plain(found[0]))
    assert missing <= UNUSED.keys(), f"add to packaging/requirements/pack.txt: {missing - UNUSED.keys()}"


def importable(marker: str) -> bool:
    """Whether a need is one for the Pythons and systems that packs are made for."""
    return not re.search(r"python_version *< *['\"]3\.(8|9|10|11)['\"]|android|ios|PyPy", marker)


def test_every_name_has_a_version() -> None:
    pinned = names("base.txt", "gym.txt", "llamacpp.txt", "mlx.txt", "uv.txt")
    for file in ("pack.txt", "pack-mlx.txt"):
        assert names(file) <= pinned, file
