"""pytest-qt loads Qt as soon as it is there, and a system without Qt's libraries would then run no test at
all. So pyproject.toml keeps it from loading by itself, and it is loaded here where it can be. Elsewhere every
file that draws counts as one skipped test, with the command that installs what is missing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from app.common.process.surroundings import child_environment
from app.sapo.scoring.sandbox import Sandbox
from tests import without_qt
from tests.without_qt import LACKING, NO_QT

FOLDER = Path(__file__).parent

settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")
"""Generated examples are the same in every run, so that a run fails for what was changed and not by the draw
or the load of the computer. `./shoal test --hypothesis-profile=default` looks for new ones."""

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""Compiled once, not by every worker and in every process that a test starts, also where the system says so."""

os.environ.update(child_environment())
"""Processes that tests start see what they see under `./shoal test`, however these tests were started."""

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
"""Figures are those of the processor, also on a computer with a card; CONTRIBUTING says how its tests run."""

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

SLOW = (
    *("ui/screen", "e2e", "cli", "bench", "relay", "node", "engines", "lab", "swarm", "packs", "updates"),
    *("launcher", "ui", "sapo"),
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


pytest_plugins = ["tests.ending", *([] if NO_QT else ["pytestqt.plugin"])]
os.environ["PYTEST_QT_API"] = "pyside6"


class Undrawn(pytest.File):
    """A file of tests that draw, where nothing can be drawn: not imported, and counted as one skipped test."""

    def collect(self) -> Iterator[pytest.Item]:
        yield Skipped.from_parent(self, name="draws")


class Skipped(pytest.Item):
    def runtest(self) -> None:
        pytest.skip(NO_QT)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.File | None:
    if NO_QT and without_qt.draws(module_path, FOLDER):
        return Undrawn.from_parent(parent, path=module_path)
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    if NO_QT and item.get_closest_marker("draws"):
        pytest.skip(NO_QT)
    return (yield from skipped_without_qt())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    return (yield from skipped_without_qt())


def skipped_without_qt() -> Iterator[None]:
    """Skips the test in progress if it, or one of its fixtures, imported Qt where Qt does not load."""
    try:
        return (yield)
    except ImportError as error:
        if NO_QT and str(error).partition(":")[0] in {library.file for library in LACKING}:
            pytest.skip(NO_QT)
        raise


if NO_QT:

    @pytest.fixture(scope="session")
    def qapp() -> None:
        pytest.skip(NO_QT)

    @pytest.fixture
    def qtbot() -> None:
        pytest.skip(NO_QT)
