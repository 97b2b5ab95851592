"""The export for verifiers: whole without this repository, and with the questions of here."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.export import add_arguments, main
from app.lab import environment
from app.sapo.families import FAMILIES
from app.sapo.questions import draw

ALONE = """
import json, sys, types
package = types.ModuleType("shoal_puzzles")  # its own __init__ wants verifiers
package.__path__ = [sys.argv[1] + "/shoal_puzzles"]
sys.modules["shoal_puzzles"] = package
from shoal_puzzles.sapo.families import FAMILIES
from shoal_puzzles.sapo.questions import draw
asked = {name: draw(name, 0, 77) for name in FAMILIES}
right = [FAMILIES[name].judge(FAMILIES[name].solution(one.entry), one.entry) for name, one in asked.items()]
assert not [name for name in sys.modules if name == "app" or name.startswith("app.")]
print(json.dumps([{name: [one.text, one.held_out] for name, one in asked.items()}, right]))
"""


def exported(to: Path, *more: str) -> int:
    import argparse

    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return main(parser.parse_args([str(to), "--format", "verifiers", *more]))


def test_the_package_stands_alone_and_asks_the_same_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "puzzles"
    assert exported(to, "--json") == 0
    assert json.loads(capsys.readouterr().out)["files"] == sum(path.is_file() for path in to.rglob("*"))
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(to)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    asked, right = json.loads(done.stdout)
    here = {name: draw(name, 0, 77) for name in FAMILIES}
    assert asked == {name: [one.text, one.held_out] for name, one in here.items()}
    assert right == [1.0] * len(FAMILIES)


def test_what_the_taskset_imports_is_in_the_package(tmp_path: Path) -> None:
    environment.write(tmp_path)
    taskset = ast.parse((tmp_path / environment.PACKAGE / "taskset.py").read_text())
    modules = [node.module for node in ast.walk(taskset) if isinstance(node, ast.ImportFrom) and node.module]
    ours = [name for name in modules if name.startswith(environment.PACKAGE)]
    assert len(ours) >= 4
    for name in ours:
        place = tmp_path / name.replace(".", "/")
        assert place.with_suffix(".py").is_file() or (place / "__init__.py").is_file(), name


def test_a_folder_with_something_in_it_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").write_text("x")
    assert exported(tmp_path) == 1
    assert "name a folder that does not exist or is empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
