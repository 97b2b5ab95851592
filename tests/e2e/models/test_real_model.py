"""A real language model of 135 million parameters, from its first minute on."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.shoal import ROOT, command

pytestmark = pytest.mark.long
MODEL = "smollm2-135m"


def lines(home: Path, *arguments: str) -> list[dict[str, Any]]:
    """A whole run. It takes minutes, so nothing here waits for a line."""
    done = subprocess.run(
        command("run", "--solo", "--model", MODEL, "--json", *arguments),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "SHOAL_HOME": str(home)},
        timeout=3600,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    got = subprocess.run(
        command("models", "get", MODEL, "--home", tmp_path), capture_output=True, text=True, cwd=ROOT
    )
    if got.returncode:
        pytest.skip(f"The real model cannot be fetched here. {got.stderr}")
    return tmp_path


def of(kind: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == kind]


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_it_is_placed_taught_and_learns(home: Path, seed: int) -> None:
    events = lines(home, "--rounds", "20", "--seed", str(seed))
    (placed,) = of("placement", events)
    assert placed["way"] == "brief" and len(placed["families"]) >= 3 and placed["lesson"] >= 8
    curve = of("probe", events)
    assert curve[0]["pass_at_1"] < 0.05
    assert curve[-1]["pass_at_1"] >= curve[0]["pass_at_1"] + 0.2
    assert curve[-1]["lenient"] >= curve[0]["lenient"] + 0.1
    assert curve[0]["everyday_rise"] == 0 and curve[-1]["everyday_rise"] <= 0.05


def test_without_placement_it_says_why_nothing_is_gained_and_heals_itself(home: Path) -> None:
    events = lines(home, "--rounds", "8", "--seed", "11", "--no-placement", "--families", "chain_sum,gcd,lcm")
    told, placed = of("flat", events), of("placement", events)
    assert told and told[0]["cause"] in ("formless", "unfinished", "failing") and placed
    assert of("probe", events)[-1]["pass_at_1"] > 0.05
