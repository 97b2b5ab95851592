"""The installed app's program: what it hands to the engine pack's Python, and with which environment."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ENTRY = Path(__file__).parents[2] / "packaging" / "frozen" / "entry.py"


@pytest.fixture(scope="module")
def entry() -> ModuleType:
    spec = importlib.util.spec_from_file_location("frozen_entry", ENTRY)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["-m", "app.node.trainer.process", "--solo"], True),
        (["-m", "app.sapo.scoring.child"], True),
        (["-m", "app.cli", "chat", "--json"], True),
        (["-m", "app.cli", "run", "--snapshots"], False),
        (["-m", "app.cli", "relay"], False),
        (["models", "get", "some/model"], False),
        (["models"], False),
        (["window"], False),
        (["-m"], False),
        ([], False),
    ],
)
def test_what_computes_with_models_needs_a_pack(entry: ModuleType, arguments: list[str], heavy: bool) -> None:
    assert entry.heavy(arguments) is heavy


def test_every_heavy_command_exists(entry: ModuleType) -> None:
    from app.cli.__main__ import commands

    assert set(commands()) >= entry.HEAVY_COMMANDS


def test_a_child_gets_the_systems_environment_back(entry: ModuleType) -> None:
    given = {
        "LD_LIBRARY_PATH": "/app/_internal",
        "LD_LIBRARY_PATH_ORIG": "/own/lib",
        "QT_PLUGIN_PATH": "/app/plugins",
        "PYTHONHOME": "/app",
        "_PYI_ARCHIVE_FILE": "/app/shoal",
        "LANG": "de_DE.UTF-8",
    }
    assert entry.cleaned(given, Path("/app/source")) == {
        "LD_LIBRARY_PATH": "/own/lib",
        "LANG": "de_DE.UTF-8",
        "PYTHONPATH": "/app/source",
        "PYTHONSAFEPATH": "1",
        "PYTHONUTF8": "1",
    }
    assert "LD_LIBRARY_PATH" not in entry.cleaned({"LD_LIBRARY_PATH": "/app"}, Path("s"))


def test_without_a_pack_it_says_what_to_do(
    entry: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_PACKS", str(tmp_path))
    with pytest.raises(SystemExit, match="shoal pack install"):
        entry.hand_over(["-m", "app.node.trainer.process"], tmp_path)


LIGHT = """
import importlib, pkgutil, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in LATER:
            raise ModuleNotFoundError(f"{name} comes with an engine pack", name=name)

LATER = set(sys.argv[1].split(","))
sys.meta_path.insert(0, Blocked())
import app.node, app.swarm, app.relay, app.install.packs, app.ui.pages
for name in ("run", "relay", "invite", "pack", "window"):
    importlib.import_module("app.cli." + name)
for name in ("app.node.node", "app.node.swarm.member", "app.node.swarm.hosting", "app.ui.shell.start"):
    importlib.import_module(name)
for page in pkgutil.iter_modules(app.ui.pages.__path__):
    importlib.import_module(f"app.ui.pages.{page.name}")
"""


def test_window_node_and_relay_need_nothing_of_a_pack() -> None:
    """The bundle leaves these packages out, so a forgotten import would break the installed app alone."""
    pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
    spec = (ENTRY.parent / "shoal.spec").read_text(encoding="utf-8")
    later = next(
        ast.literal_eval(node.value)
        for node in ast.parse(spec).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == "LATER"
    )
    assert {"torch", "safetensors", "numpy"} <= later
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, ",".join(sorted(later))],
        capture_output=True,
        text=True,
        cwd=ENTRY.parents[2],
    )
    assert done.returncode == 0, done.stderr[-2000:]
