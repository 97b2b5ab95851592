"""What people are told to run is there: ./shoal in a checkout alone, and its set-up too."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cli import __main__ as cli
from app.cli import run
from app.install.packs import place
from app.install.packs.manifest import trust
from app.models.shelf import locate
from app.node.trainer import link
from app.sapo.scoring import sandbox
from engines import opening, remedy
from engines.contract import EngineError
from tests.ui.screen.installed import stand_in

ROOT = Path(__file__).parents[2]
HERE = {
    "app/lab": "studies are made and written up in a checkout",
    "app/bench": "measures beside peers that no installed app has",
    "app/install/launcher": "is ./shoal itself",
    "app/cli/lab.py": "a study's record names the command that repeats it in any checkout",
    "app/cli/starter.py": "makes the model that a checkout carries",
}
"""What is for those who have a checkout."""
SAID = {
    "engines/remedy.py": "./shoal",
    "app/install/updates/installed.py": "./shoal",
    "app/cli/__main__.py": "of Shoal's source with ./shoal, which installs everything.",
    "app/relay/page/page.py": "<code>./shoal run --relay ",
}
"""Where it is right: in what tells the copies apart, of a checkout to be made, and on a relay's page, whose
readers have other copies than the relay."""
PACKED, FROZEN, CHECKOUT = "packed", "frozen", "checkout"


@pytest.fixture(params=[CHECKOUT, FROZEN, PACKED])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Which copy this is: for an installed app's own Python and for that of its engine."""
    monkeypatch.delenv(remedy.COMMAND_ENV, raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    if request.param == FROZEN:
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    elif request.param == PACKED:
        (tmp_path / place.MARK).touch()
    return str(request.param)


def help_of_run() -> str:
    parser = argparse.ArgumentParser(prog="shoal run")
    run.add_arguments(parser)
    return " ".join(parser.format_help().split())


def refused(call: Callable[[], object], error: type[Exception]) -> str:
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


SENTENCES: dict[str, tuple[Callable[[], str], str, str]] = {
    "torch is missing": (
        lambda: opening.why_not_installed("torch"),
        "PyTorch isn't installed: run ./shoal setup, which repairs the installation.",
        "PyTorch isn't installed: repair the engine in Shoal's window, or with shoal pack repair.",
    ),
    "llama.cpp is missing": (
        lambda: opening.why_not_installed("llamacpp"),
        "llama.cpp isn't installed: run ./shoal setup --engine llamacpp, which builds it.",
        "llama.cpp isn't installed: repair the engine in Shoal's window, or with shoal pack repair.",
    ),
    "MLX is missing": (
        lambda: opening.why_not_installed("mlx"),
        "MLX isn't installed. It is for Macs with Apple Silicon; ./shoal setup installs it there.",
        "MLX isn't installed. It is for Macs with Apple Silicon; the engine pack there has it.",
    ),
    "a model is missing": (
        lambda: refused(lambda: locate("No/Model"), EngineError),
        "The model No/Model isn't on this computer: run ./shoal models get No/Model, or choose starter.",
        "The model No/Model isn't on this computer: run shoal models get No/Model, or choose starter.",
    ),
    "the trainer died": (
        lambda: link.describe_exit(1, Path("t.log")).remedy,
        "run ./shoal setup, or choose another --model.",
        "repair the engine in Shoal's window, or with shoal pack repair, or choose another --model.",
    ),
    "the app is damaged": (
        lambda: cli.sentence(ModuleNotFoundError("No module named 'app.x'", name="app.x")),
        "A part of the installation is missing (app.x); run ./shoal setup, which repairs it.",
        "A part of the installation is missing (app.x); install Shoal again.",
    ),
    "a package is missing": (
        lambda: cli.sentence(ModuleNotFoundError("No module named 'trl'", name="trl")),
        "A part of the installation is missing (trl); run ./shoal setup, which repairs it.",
        "This needs trl, which is not part of an installed app's engine: start it in a copy of Shoal's source "
        "with ./shoal, which installs everything.",
    ),
    "no engine packs": (
        lambda: refused(lambda: trust(Path("nowhere")), Exception),
        "This copy of Shoal comes without engine packs: start it with ./shoal, which installs what it needs, "
        "or name a key with --key.",
        "This copy of Shoal comes without engine packs: install one that has been released, or name a key "
        "with --key.",
    ),
    "no engine": (
        place.no_engine_sentence,
        "The engine isn't installed: open Shoal's window, or run ./shoal pack install.",
        "The engine isn't installed: open Shoal's window, or run shoal pack install.",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_sentence_names_what_this_copy_has(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", nothing)
    said, checkout, installed = SENTENCES[name]
    assert said() == (checkout if kind == CHECKOUT else installed)


def test_the_scoring_process_is_a_part_of_the_engine(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lost:
        def __init__(self, command: object) -> None:
            pass

        def wait_until_ready(self, late: object) -> None:
            raise sandbox._Lost("it is lost")

        def end(self) -> None:
            pass

    monkeypatch.setattr(sandbox, "_Child", Lost)
    monkeypatch.setattr(sandbox.Sandbox, "_drop", lambda self, child: setattr(self, "_child", None))
    said = refused(lambda: sandbox.Sandbox()._running(), sandbox.SandboxError)
    mends = "repair the engine in Shoal's window, or with shoal pack repair"
    expected = "run ./shoal again to repair the set-up" if kind == CHECKOUT else mends
    assert said == f"The scoring process does not start (it is lost): {expected}."


def test_help_names_what_this_copy_has(kind: str) -> None:
    own = "./shoal" if kind == CHECKOUT else "shoal"
    told = cli.overview()
    assert f"\n  {own} doctor " in told and f"\n{own} COMMAND --help tells" in told
    assert ("  ./shoal setup " in cli.overview(everything=True)) is (kind == CHECKOUT), (
        "an installed app has none"
    )
    assert f"({own} doctor says why)" in help_of_run()


def test_what_is_typed_is_what_the_program_has_handed_on(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(remedy.COMMAND_ENV, "/opt/100%/shoal")
    if kind == CHECKOUT:
        assert remedy.command("doctor") == "./shoal doctor"
        return
    assert remedy.command("doctor") == "/opt/100%/shoal doctor"
    assert "(/opt/100%/shoal doctor says why)" in help_of_run()


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for the installed app is a shell script")
def test_the_installed_program_names_itself(tmp_path: Path) -> None:
    program = stand_in(tmp_path / "Shoal app")
    packs = {**os.environ, "SHOAL_PACKS": str(tmp_path / "packs"), remedy.COMMAND_ENV: "another"}

    def said(*words: str) -> str:
        done = subprocess.run([program, *words], capture_output=True, text=True, timeout=120, env=packs)
        return done.stdout + done.stderr

    assert said("swim").startswith(
        f"shoal: There is no command swim; did you mean swarm? '{program}' --help lists run, "
    )
    assert said("doctor") == (
        f"shoal: The engine isn't installed: open Shoal's window, or run '{program}' pack install.\n"
    )


def spoken(source: str) -> list[tuple[int, str]]:
    """Texts with ./shoal in them, without docstrings."""
    tree = ast.parse(source)
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and "./shoal" in node.value
        and node not in docstrings
    ]


def test_no_text_of_an_installed_app_speaks_of_a_checkout() -> None:
    found = {}
    for path in [*(ROOT / "app").rglob("*.py"), *(ROOT / "engines").rglob("*.py")]:
        name, source = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        if "./shoal" in source and not name.startswith(tuple(HERE)):
            found |= {(name, line): text for line, text in spoken(source)}
    wrong = {place: text for place, text in found.items() if SAID.get(place[0], text + "?") not in text}
    assert wrong == {}, "engines.remedy and engines.sound say how this copy is started"
    assert {name for name, _ in found} == set(SAID), "nothing is excused that is not there"


def test_the_test_finds_what_it_should() -> None:
    assert spoken('print(f"run ./shoal setup --engine {name}")') == [(1, "run ./shoal setup --engine ")]
    assert spoken('def f():\n    """As ./shoal does."""\nA = 1\n"""For ./shoal."""') == []
