"""./shoal trial as its readers meet it: one JSON object, figures that were measured, and what is remembered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def trial(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app.cli", "trial", "--json", "--home", str(home), *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.long
def test_it_measures_predicts_and_remembers(tmp_path: Path) -> None:
    done = trial(tmp_path, "--engine", "torch")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["model"], told["engine"]) == ("starter", "torch")
    assert told["memory_mb"] > 50 and told["rounds_per_hour"] > 0 and told["memory_free_mb"] > 0
    rows = {row["name"]: row for row in told["engines"]}
    assert set(rows) == {"torch", "llamacpp", "mlx"} and all(row["reason"] for row in rows.values())
    assert rows["mlx"]["rounds_per_hour"] is None
    doctor = subprocess.run(
        [sys.executable, "-m", "app.cli", "doctor", "--json", "--home", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert json.loads(doctor.stdout)["trials"]["torch"]["rounds_per_hour"] == told["rounds_per_hour"]
