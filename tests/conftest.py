"""pytest-qt loads Qt as soon as it is there, and a system without Qt's libraries would then run no test at
all. So pyproject.toml keeps it from loading by itself, and it is loaded here where it can be."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from app.common.process.surroundings import surroundings
from app.sapo.scoring.sandbox import Sandbox
from app.ui.shell.display import missing_libraries

FOLDER = Path(__file__).parent

settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")
"""Generated examples are the same in every run, so that a run fails for what was changed and not by the draw
or the load of the computer. `./shoal test --hypothesis-profile=default` looks for new ones."""

os.environ.update(surroundings())
"""Processes that tests start see what they see under `./shoal test`, however these tests were started."""

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
"""Figures are those of the processor, also on a computer with a card; CONTRIBUTING says how its tests run."""

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

SLOW = (
    "ui/screen",
    "e2e",
    "cli",
    "bench",
    "relay",
    "node",
    "engines",
    "lab",
    "swarm",
    "packs",
    "updates",
    "launcher",
)
"""Folders whose files are run first: no long file is left for the end, when the other processes are done."""


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """One scoring child for all tests of a process that only score. Patient, so that a busy computer never ends
    it: a new process id means that an answer did."""
    with Sandbox(judge_seconds=20.0) as shared:
        yield shared


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        place = os.path.relpath(item.path, FOLDER).replace(os.sep, "/")
        return next((at for at, name in enumerate(SLOW) if place.startswith(f"{name}/")), len(SLOW))

    items.sort(key=rank)


pytest_plugins = (
    []
    if sys.platform == "linux" and missing_libraries({"QT_QPA_PLATFORM": "offscreen"})
    else ["pytestqt.plugin"]
)
