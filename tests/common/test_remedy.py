"""What people are told to run is there: ./shoal in a checkout alone, and its set-up too."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli import __main__ as cli
from app.install.packs import place
from engines import remedy
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
    "app/cli/_saying.py": "of Shoal's source with ./shoal, which installs everything.",
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


def test_help_names_what_this_copy_has(kind: str) -> None:
    own = "./shoal" if kind == CHECKOUT else "shoal"
    told = cli.overview()
    assert f"\n  {own} doctor " in told and f"\n{own} COMMAND --help tells" in told
    assert ("  ./shoal setup " in cli.overview(everything=True)) is (kind == CHECKOUT), (
        "an installed app has none"
    )
    assert remedy.command("doctor") == f"{own} doctor"


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
