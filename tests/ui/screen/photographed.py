"""Pictures of the window for readers: `python -m tests.ui.screen.photographed [FOLDER]`. A real run on a real
screen (1440x900), first alone, then in a swarm with two more nodes over a relay, once dark and once light; it
takes some minutes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.ui.screen.person import Person, person
from tests.ui.screen.real import ROOT, end, wait

FOLDER = ROOT / "resources" / "screenshots"
PAGES = ("overview", "live", "skills", "swarm", "history", "models", "tryit", "privacy", "settings")
ROUNDS = 16
_NODES = 2
_SETTLE_S = 4
"""In which a page has found out what it shows, models for example."""


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for theme in ("dark", "light"):
        with tempfile.TemporaryDirectory() as name, _swarm(Path(name)) as url:
            home = Path(name) / "shoal"
            with person(str(shutil.which("Xvfb")), home, "1440x900", theme, "en", probe_every=5) as one:
                _walk(one, url, folder, theme)


def _walk(one: Person, url: str, folder: Path, theme: str) -> None:
    def take(name: str) -> None:
        one.stands(name)
        _photograph(one.display, folder / f"{name}-{theme}.png")

    for step in ("welcome", "welcome-model", "welcome-company"):
        take(step)
        one.keys("Return")
    wait(lambda: one.sees("points") >= 2, "it learns")
    one.goes("ctrl+4", "swarm")
    one.clicks("Invite, six words or address")
    one.types(url)
    one.keys("Return")
    wait(lambda: one.sees("taken") > 0, "it learns from the others")
    wait(lambda: one.sees("round") >= ROUNDS, "there is something to see")
    for at, page in enumerate(PAGES, start=1):
        one.goes(f"ctrl+{at}", page)
        time.sleep(_SETTLE_S)
        take(page)
    one.goes("F1", "help")
    take("help")
    print(theme, one.ask("state"), *one.found, sep="\n")


@contextlib.contextmanager
def _swarm(folder: Path) -> Iterator[str]:
    """A relay with two nodes that learn; the relay's address."""
    command = [sys.executable, "-m", "app.cli"]
    given = {
        "cwd": ROOT,
        "env": {**os.environ, "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"},
        "stderr": subprocess.DEVNULL,
    }
    relay = subprocess.Popen([*command, "relay", "--port", "0"], stdout=subprocess.PIPE, **given)
    assert relay.stdout is not None
    url = str(json.loads(relay.stdout.readline())["url"])
    nodes = [
        subprocess.Popen(
            [*command, "run", "--relay", url, "--home", str(folder / str(at)), "--json"],
            stdout=subprocess.DEVNULL,
            **given,
        )
        for at in range(_NODES)
    ]
    try:
        yield url
    finally:
        for one in (*nodes, relay):
            end(one)


def _photograph(display: str, to: Path) -> None:
    """Shoal's window without its frame, in few colours, for it is looked at in a page."""
    environment = {**os.environ, "DISPLAY": display}
    search = ["xdotool", "search", "--onlyvisible", "--name", "^Shoal$"]
    number = subprocess.run(search, env=environment, check=True, capture_output=True, text=True).stdout.split()[
        -1
    ]
    colours = ["-strip", "+dither", "-colors", "255"]
    subprocess.run(["import", "-window", number, *colours, f"png8:{to}"], env=environment, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
