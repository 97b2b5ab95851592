"""A model that is broken, in whatever way, costs one sentence: no trainer dies of it or is started again."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import make_tiny
from tests.e2e.shoal import Running, python_with, shoal

if sys.platform == "win32":
    pytest.skip("forks trainers", allow_module_level=True)


def deep(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny(tmp_path_factory.mktemp("models") / "tiny")


@pytest.mark.parametrize(
    ("name", "content"), [("config.json", deep(100_000)), ("chat_template.jinja", "{% include 'other' %}")]
)
def test_the_command_says_it_and_ends(model: Path, tmp_path: Path, name: str, content: str) -> None:
    broken = shutil.copytree(model, tmp_path / "broken")
    (broken / name).write_text(content)
    done = shoal("run", "--solo", "--rounds", "1", "--model", broken, "--home", tmp_path / "home", "--json")
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr
    assert "trainer_restarted" not in done.stdout and "It restarts" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith(".") and ": " in last and len(last) < 400, last


def test_a_model_that_kills_its_trainer_is_tried_twice(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing here can do it, so an engine's library is given that ends the process when it is imported."""
    torch = tmp_path / "packages" / "torch"
    torch.mkdir(parents=True)
    (torch / "__init__.py").write_text("import os; os.kill(os.getpid(), 11)")
    monkeypatch.setattr(sys, "executable", python_with(torch.parent, tmp_path / "python"))
    node = Running("--model", model, "--home", tmp_path / "home")
    assert node.wait() == 1
    assert [event["event"] for event in node.events].count("trainer_restarted") == 1
    assert "2 times in a row" in node.said
