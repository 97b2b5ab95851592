"""Sampler, learner and round are measured for real, on a model of a few thousand weights."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.bench import BenchError, harness
from tests import inside

ROOT = Path(__file__).parents[2]
TINY = ("--model=tiny", "--prompt=12", "--new=6", "--rows=3", "--repeats=1", "--threads=1")


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app.cli", "bench", *arguments],
        cwd=ROOT,
        env={**os.environ},
        capture_output=True,
        text=True,
        timeout=600,
    )


def figures(*arguments: str) -> dict[str, Any]:
    done = bench(*arguments, "--json", *TINY)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 1
    found: dict[str, Any] = json.loads(lines[0])
    return found


@pytest.mark.long
def test_sampling_is_measured_beside_transformers() -> None:
    found = figures("sampler", "--only=transformers fp32,torch")
    assert set(found["candidates"]) == {"transformers fp32", "torch"}
    assert found["engine"] == "torch" and found["tokens_per_s"] > 0 and found["speedup_vs_transformers"] > 0
    assert found["precision_class"] == "fp32" and found["share_of_llamacpp_limit"] is None
    assert (found["rows"], found["prompt_tokens"], found["new_tokens"]) == (3, 12, 6)
    for row in found["candidates"].values():
        assert row["seconds"] > 0 and 100 < row["peak_mb"] < 3000


@pytest.mark.long
def test_a_step_is_measured() -> None:
    found = figures("learner", "--only=torch,torch checkpointing")
    assert found["seconds"] > 0 and found["peak_mb"] > 100
    assert "layers computed twice" in found["candidates"]["torch checkpointing"]["note"]


@pytest.mark.skipif(importlib.util.find_spec("trl") is None, reason="TRL is not installed")
@pytest.mark.long
def test_a_round_is_measured_beside_trl() -> None:
    found = figures("round", "--only=torch,trl fp32")
    assert found["speedup_vs_trl"] > 0 and found["peak_memory_ratio_vs_trl"] > 0
    ours, peer = found["candidates"]["torch"], found["candidates"]["trl fp32"]
    for row in (ours, peer):
        assert row["seconds"] == pytest.approx(row["sample_s"] + row["step_s"], abs=0.01)


def test_wrong_names_are_refused() -> None:
    done = inside.shoal("bench", "sampler", "--only=other")
    assert done.returncode == 1 and "There is no candidate other" in done.stderr


def test_arms_take_turns_and_one_that_fails_is_left_out() -> None:
    said: list[str] = []
    played: list[str] = []

    def measure(name: str, seconds: float) -> dict[str, float]:
        played.append(name)
        if name == "b":
            raise BenchError("no b here")
        return {"seconds": seconds * len(played)}

    arms = {name: partial(measure, name, 1.0) for name in ("a", "b", "c")}
    found, repeats = harness.in_turns(arms, 2, said.append)
    assert played == ["a", "b", "c", "a", "c"] and repeats == 2
    assert found == {"a": {"seconds": 2.5}, "b": {"missing": "no b here"}, "c": {"seconds": 4.0}}


def test_a_run_that_is_done_is_read_and_another_begins_anew(tmp_path: Path) -> None:
    played: list[bool] = []

    def play(place: Path) -> dict[str, int]:
        played.append((place / "old").exists())
        return {"right": 3}

    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "old").touch()
    for _ in range(2):
        assert harness.kept(tmp_path / "run", "end.json", play) == {"right": 3}
    assert played == [False]


def test_shares_are_held_against_the_same_seeds() -> None:
    one = harness.beside([0.5, 0.7], [0.4, 0.5])
    assert (one["end"], one["apart"]) == (60.0, 15.0) and one["low"] < 0 < 15 < one["high"]
    assert harness.difference(one).startswith("+15.0 [-") and harness.beside([0.5], [0.4])["low"] is None
