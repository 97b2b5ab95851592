"""The real window on a real X server: the pointer moves, and learning gives way."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.bench.runs.window import prepare
from tests.ui.screen.real import (
    end,
    move,
    node,
    rounds,
    scorer,
    screen,
    start,
    trainer,
    wait,
)

pytestmark = pytest.mark.long


@pytest.fixture
def display(xvfb: str) -> Iterator[str]:
    with screen(xvfb) as name:
        yield name


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Of an owner who has said before that it shall learn, at any time."""
    prepare(tmp_path)
    return tmp_path


def test_idle_time_starts_and_input_ends_the_trainer(display: str, home: Path) -> None:
    settings = home / "settings.json"
    chosen = {**json.loads(settings.read_text()), "contribute_when_idle": True, "idle_s": 8}
    settings.write_text(json.dumps(chosen))
    move(display, 500)
    running = start(display, home)
    try:
        wait(lambda: node(running.pid), "the node is there")
        assert trainer(running.pid) is None, "somebody has just moved the pointer"
        wait(lambda: trainer(running.pid), "nobody has for eight seconds")
        wait(lambda: rounds(home) >= 1, "it learns")
        for x in (600, 700):
            moved = time.monotonic()
            move(display, x)
            wait(lambda: trainer(running.pid) is None, "it gives way")
            gone = time.monotonic() - moved
            wait(lambda: scorer(running.pid) is None, "the scoring child too")
            print(f"The scoring child was gone after {time.monotonic() - moved:.1f} s.")
            wait(lambda: trainer(running.pid), "and comes back")
            back = time.monotonic() - moved - 8
            print(f"Gone {gone:.1f} s after the pointer had moved, back {back:.1f} s after 8 s without input.")
            wait(lambda: scorer(running.pid), "it learns again")
    finally:
        end(running)
