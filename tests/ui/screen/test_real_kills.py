"""kill -9 of window, node and trainer in every combination, while it learns and while it is paused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain, combinations
from pathlib import Path

import psutil
import pytest

from app.bench.runs.window import prepare
from app.node.data.home import lock_data_folder
from app.node.history import history
from tests.ui.screen.real import end, ended, family, node, press, rounds, scorer, screen, start, trainer, wait

pytestmark = pytest.mark.long

WHO = ("window", "node", "trainer")
COMBINATIONS = list(chain.from_iterable(combinations(WHO, count) for count in (1, 2, 3)))


@pytest.fixture
def display(xvfb: str) -> Iterator[str]:
    with screen(xvfb) as name:
        yield name


def rows(home: Path) -> list[tuple[int, float, int]]:
    return [(row.round, row.at, row.informative_own) for row in history.read(history.newest(home)).rounds]


def processes(pid: int) -> dict[str, psutil.Process | None]:
    return {"window": psutil.Process(pid), "node": node(pid), "trainer": trainer(pid), "scorer": scorer(pid)}


def quiet(pid: int) -> bool:
    """Whether nothing computes for five seconds."""
    for _ in range(20):
        if trainer(pid) or scorer(pid):
            return False
        time.sleep(0.25)
    return True


@pytest.mark.parametrize("victims", COMBINATIONS, ids="+".join)
def test_killed_while_it_learns_it_goes_on_with_its_history(
    display: str, tmp_path: Path, victims: tuple[str, ...]
) -> None:
    prepare(tmp_path)
    running = start(display, tmp_path)
    try:
        wait(lambda: rounds(tmp_path) >= 2 and trainer(running.pid), "rounds are done")
        found = processes(running.pid)
        everything = family(running.pid)
        for victim in victims:
            process = found[victim]
            assert process is not None
            process.kill()
        before = rows(tmp_path)
        if "window" in victims:
            running.wait()
            assert ended(everything), "nothing is left running"
            with lock_data_folder(tmp_path):
                pass  # and nothing holds the folder
            assert rows(tmp_path)[: len(before)] == before, "the next start begins with the same history"
            running = start(display, tmp_path)
        else:
            assert ended([one for who in victims if (one := found[who])])
            if "node" in victims:
                assert ended([one for who in ("trainer", "scorer") if (one := found[who])]), "no orphans"
        wait(lambda: rounds(tmp_path) >= len(before) + 2, "it goes on after what it knew")
        after = rows(tmp_path)
        assert [row[0] for row in after] == list(range(1, len(after) + 1)), "neither gaps nor doubles"
        # The round that was just being made safe may be played again (app.node.history.store).
        assert after[: len(before) - 1] == before[:-1]
        assert len([one for one in family(running.pid) if "--snapshots" in one.cmdline()]) == 1
        last = family(running.pid)
    finally:
        end(running)
    assert ended(last)
    with lock_data_folder(tmp_path):
        pass


@pytest.mark.parametrize("victims", [("window",), ("node",), ("window", "node")], ids="+".join)
def test_killed_while_paused_it_stays_paused_and_nothing_runs(
    display: str, tmp_path: Path, victims: tuple[str, ...]
) -> None:
    prepare(tmp_path)
    running = start(display, tmp_path)
    try:
        wait(lambda: rounds(tmp_path) >= 1 and trainer(running.pid), "it learns")
        busy = [one for one in (trainer(running.pid), scorer(running.pid)) if one]
        press(display, "ctrl+p")
        assert ended(busy), "trainer and scoring child end"
        wait(lambda: (tmp_path / "orders.json").exists(), "the pause is kept")
        before, found, everything = rows(tmp_path), processes(running.pid), family(running.pid)
        for victim in victims:
            process = found[victim]
            assert process is not None
            process.kill()
        if "window" in victims:
            running.wait()
            assert ended(everything)
            running = start(display, tmp_path)
        killed = found["node"]
        wait(lambda: (now := node(running.pid)) and now != killed, "a node is there again")
        wait(lambda: "paused" in (tmp_path / "orders.json").read_text(), "it remembers")
        # A node that starts has a scoring child, and ends it as soon as it knows of the pause.
        wait(lambda: quiet(running.pid), "trainer and scoring child stay away")
        assert rows(tmp_path) == before
        press(display, "ctrl+p")
        wait(lambda: rounds(tmp_path) > len(before), "resumed, it goes on")
        assert rows(tmp_path)[: len(before)] == before
    finally:
        end(running)
