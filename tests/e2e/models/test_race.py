"""The race's own claim, with real models: after twenty rounds the starter wins against what it was."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.shoal import ROOT, command, shoal

SEEDS = range(1, 11)


def race(home: Path, seed: int) -> dict[str, int]:
    done = shoal("race", "--home", home, "--seed", str(seed), "--json")
    assert done.returncode == 0, done.stderr
    *laps, told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [lap["place"] for lap in laps] == list(range(20)), "twenty puzzles"
    assert sum(lap["after"]["solved"] for lap in laps) == told["after"]
    return dict(told)


def test_without_a_round_there_is_nothing_to_race(tmp_path: Path) -> None:
    done = shoal("race", "--home", tmp_path)
    assert done.returncode == 1 and "nothing to race yet" in done.stderr


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_after_twenty_rounds_the_starter_wins_nine_of_ten_races(tmp_path: Path) -> None:
    told: dict[int, dict[str, int]] = {}
    for seed in SEEDS:
        home = tmp_path / str(seed)
        learned = command("run", "--solo", "--rounds", "20", "--seed", str(seed), "--home", home)
        subprocess.run(learned, cwd=ROOT, check=True, timeout=900, capture_output=True)
        told[seed] = race(home, seed)
    won = sum(one["after"] > one["before"] for one in told.values())
    assert won >= 9, {seed: (one["before"], one["after"]) for seed, one in told.items()}
