"""The programs in resources/examples, run as they are, with the library's wheel and a real relay."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.swarm.relays import ROOT, Relay

pytestmark = pytest.mark.long
EXAMPLES, PATIENCE_S = ROOT / "resources" / "examples", 900.0


@pytest.fixture(scope="module")
def relay() -> Iterator[Relay]:
    relay = Relay()
    relay.start()
    yield relay
    relay.kill()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder of its own, with the unpacked wheel."""
    place = tmp_path_factory.mktemp("home")
    subprocess.run([sys.executable, ROOT / "packaging/library/wheel.py", place], check=True)
    (wheel,) = place.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(place / "site")
    return place


def example(place: Path, name: str, *arguments: str) -> subprocess.Popen[str]:
    surroundings = {"HOME": str(place), "USERPROFILE": str(place), "PYTHONPATH": str(place / "site")}
    options: dict[str, Any] = dict(
        stdout=subprocess.PIPE, text=True, cwd=place, env={**os.environ, **surroundings}
    )
    return subprocess.Popen([sys.executable, "-P", EXAMPLES / name, *arguments], **options)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_is_short_and_says_how_it_is_run(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 40 and f"python {path.name} shoal://join/" in text


def test_what_a_solver_publishes_is_printed_by_a_listener(relay: Relay, place: Path) -> None:
    listening = example(place, "listen.py", relay.url, str(PATIENCE_S))
    assert listening.stdout is not None and listening.stdout.readline().startswith("Here you are ")
    assert example(place, "solver.py", relay.url, "4").communicate(timeout=PATIENCE_S)[0].startswith("4 groups")
    heard = listening.stdout.readline()
    listening.kill()
    listening.communicate()
    assert "(euclid) has " in heard and " of 8 right" in heard


@pytest.mark.skipif(find_spec("trl") is None, reason="needs TRL: ./shoal setup --bench installs it")
def test_trl_trains_in_the_swarm(relay: Relay, place: Path) -> None:
    training = example(place, "trl_smollm2.py", relay.url, "2", str(ROOT / "resources" / "starter"))
    said, _ = training.communicate(timeout=PATIENCE_S)
    assert training.returncode == 0 and "swarm/peer_groups" in said and "Connected to " in said
