"""kill -9 at random moments: every restart goes on, at most the round in flight is done again, nothing is
broken."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from app.node.data.home import model_mark
from app.node.history import checkpoint
from tests.e2e.shoal import QUICK_PROBES, Running, checkpoints, rows

GROUPS = 4
OPTIONS = ("--local", str(GROUPS), "--families", "chain_sum,gcd", "--probe-every", "3", *QUICK_PROBES)


def test_killed_at_random_moments(model: Path, tmp_path: Path) -> None:
    """Once in a round, once while it starts, once after its trainer was killed."""
    survive(model, tmp_path, kills=3, random_=random.Random(6))


@pytest.mark.long
def test_killed_at_twenty_random_moments(model: Path, tmp_path: Path) -> None:
    survive(model, tmp_path, kills=20, random_=random.Random(20))


def survive(model: Path, home: Path, kills: int, random_: random.Random) -> None:
    safe = 0
    for number in range(kills):
        node = Running("--model", model, "--home", home, *OPTIONS)
        if number % 3 == 1:  # while it still starts
            time.sleep(random_.uniform(0.0, 4.0))
        else:
            started = node.wait_for_kind("start")
            assert started["round"] == safe
            if number % 3 == 2:
                node.wait_for_kind("round")
                os.kill(node.trainer(), signal.SIGKILL)
                sentence = node.wait_for_kind("trainer_restarted")["sentence"]
                assert "It restarts" in sentence and "-9" not in sentence
                node.wait_for_kind("round")
            time.sleep(random_.uniform(0.0, 2.5))
        assert "Traceback" not in node.said
        node.kill()
        told = [event["round"] for event in node.events if event["event"] == "checkpoint"]
        assert told == list(range(safe + 1, safe + 1 + len(told)))
        safe = check(home, model, safe + len(told))
    node = Running("--model", model, "--home", home, "--rounds", "1", *OPTIONS)
    assert node.wait_for_kind("start")["round"] == safe
    assert node.wait_for_kind("end")["reason"] == "rounds"
    assert node.wait() == 0
    assert "can't be used" not in node.said and "damaged" not in node.said
    assert check(home, model, safe + 1) == safe + 1
    assert [path.name for path in home.rglob("*") if path.name.startswith((".", "damaged-"))] == []
    ends = rows(home, "SELECT round FROM probes ORDER BY round")
    assert len(ends) == len(set(ends)) and {(round_,) for round_ in range(0, safe + 2, 3)} <= set(ends)


def check(home: Path, model: Path, told: int) -> int:
    """Looks at the files of a dead node. `told` is the last round that it said was safe. Returns the safe
    round."""
    if not list(home.glob("models/*/checkpoints")):
        assert told == 0
        return 0
    folders = checkpoint.newest_first(checkpoints(home))
    states = [checkpoint.read(folder, model_mark(model)) for folder in folders]
    safe = states[0].round if states else 0
    assert safe in (told, told + 1)  # killed between the new name and the event
    assert [state.round for state in states] == [safe, safe - 1, safe - 2][: len(states)]
    rounds = [round_ for (round_,) in rows(home, "SELECT round FROM rounds ORDER BY round")]
    assert rounds in (
        list(range(1, safe + 1)),
        list(range(1, safe + 2)),
    )  # at most the one whose name was not given
    assert rows(home, "SELECT DISTINCT count(*) FROM groups GROUP BY round") in ([], [(GROUPS,)])
    assert rows(home, "PRAGMA integrity_check") == [("ok",)]
    return safe
