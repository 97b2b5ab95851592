from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.doctor import Judged, choose, judge_cuda, judge_mps

ROOT = Path(__file__).parents[2]


def test_doctor_answers_with_one_json_object(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "doctor", "--json", "--home", str(tmp_path / "not yet" / "there")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    engines = {engine["name"]: engine for engine in told["engines"]}
    assert set(engines) == {"torch-cuda", "torch-mps", "torch-cpu", "llamacpp", "mlx"}
    assert all(engine["reason"].endswith(".") for engine in told["engines"])
    assert engines["torch-cpu"]["usable"]
    assert "not built into this version" in engines["llamacpp"]["reason"]
    assert told["engine"] == next(engine["name"] for engine in told["engines"] if engine["usable"])
    assert told["reason"].startswith(engines[told["engine"]]["reason"])
    assert told["memory"]["total_mb"] > 100 and told["disk"]["free_mb"] > 0 and told["cpu"]["cores"] >= 1
    assert told["disk"]["home"] == str(tmp_path / "not yet" / "there")
    assert told["packages"]["torch"].startswith("2.13.0")
    assert not (tmp_path / "not yet").exists()


def test_the_choice_says_why_the_better_ones_were_passed_over() -> None:
    engines = [
        Judged("fast", False, "No card."),
        Judged("slow", True, "It runs."),
        Judged("other", True, "Also."),
    ]
    assert choose(engines) == ("slow", "It runs. No card.")
    assert choose(engines[:1]) == ("", "No engine can run on this computer. No card.")


@pytest.mark.parametrize(
    ("built_for", "available", "usable", "words"),
    [
        (None, False, False, "no CUDA"),
        ("13.0", False, False, "no NVIDIA card"),
        ("13.0", True, True, "runs on Big Card"),
    ],
)
def test_cuda(built_for: str | None, available: bool, usable: bool, words: str) -> None:
    judged, reason = judge_cuda(built_for, available, ["Big Card"] if available else [])
    assert judged is usable and words in reason


@pytest.mark.parametrize(
    ("system", "machine", "available", "usable", "words"),
    [
        ("linux", "x86_64", False, False, "Apple Silicon only"),
        ("darwin", "x86_64", False, False, "Apple Silicon only"),
        ("darwin", "arm64", False, False, "macOS 14"),
        ("darwin", "arm64", True, True, "Metal"),
    ],
)
def test_metal(system: str, machine: str, available: bool, usable: bool, words: str) -> None:
    judged, reason = judge_mps(system, machine, available)
    assert judged is usable and words in reason
