"""`./shoal bench gguf` on a tiny model: its keys, and that a wrong conversion would show."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from app.bench import BenchError
from tests.bench import gguf

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
ROOT = Path(__file__).parents[2]


def test_a_tiny_shape() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "bench", "gguf", "--models=tiny", "--positions=200", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert [(case["model"], case["lora"], case["positions"]) for case in figures["cases"]] == [
        ("tiny", False, 200),
        ("tiny", True, 200),
    ]
    assert figures["top_1_percent"] >= figures["budget"]["top_1_percent"]
    assert all(case["logprob_mean"] < 0.01 < case["margin_median"] for case in figures["cases"])


def test_what_is_compared() -> None:
    wanted = np.log(np.array([[0.7, 0.2, 0.1], [0.4, 0.5, 0.1]]))
    same = gguf._compared(wanted, wanted + 3.0, [0, 1])
    assert same[0].tolist() == [1, 1] and same[1] == pytest.approx(0, abs=1e-12)
    assert same[2] == pytest.approx(np.log([3.5, 1.25]))
    other = gguf._compared(wanted, wanted[:, ::-1], [0, 1])
    assert other[0].tolist() == [0, 1] and other[1] == pytest.approx([0, 0])
    figures = gguf._summed(other)
    assert figures["top_1_percent"] == 50 and figures["margin_most_where_other"] == pytest.approx(np.log(3.5))


def test_an_unknown_shape() -> None:
    import argparse

    with pytest.raises(BenchError, match="choose from starter"):
        gguf.run(argparse.Namespace(models="huge", positions=10, kind="f16"), print)
