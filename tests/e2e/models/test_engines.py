"""`./shoal run --engine` for real: every engine from one home, and what is said of one that cannot run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from engines import opening
from tests import inside
from tests.e2e.shoal import QUICK_PROBES, python_with, shoal

SMALL = ("--local", "4", "--families", "chain_sum,gcd", "--probe-every", "50", *QUICK_PROBES, "--json")


def test_an_unknown_engine_is_wrong_usage(tmp_path: Path) -> None:
    done = inside.shoal("run", "--solo", "--engine", "tensorflow", "--home", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "tensorflow" in done.stderr and "llamacpp" in done.stderr and not list(tmp_path.iterdir())


def test_an_engine_that_is_not_there_is_refused_with_its_remedy(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken" / "llama_cpp"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('libllama.so: cannot open shared object file')")
    monkeypatch.setattr(sys, "executable", python_with(broken.parent, tmp_path / "python"))
    done = shoal(
        *("run", "--solo", "--engine", "llamacpp", "--rounds", "1", "--model", model, "--home", tmp_path / "h"),
        *SMALL,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("shoal: ") and "llama.cpp" in last and "./shoal setup" in last
    assert "Traceback" not in done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1]["event"] == "end" and events[-1]["reason"] == "failed"


@pytest.mark.long
@pytest.mark.parametrize("other", ["llamacpp", pytest.param("mlx", marks=pytest.mark.long)])
def test_another_engine_goes_on_in_the_same_home(model: Path, tmp_path: Path, other: str) -> None:
    if reason := opening.why_unavailable(other):
        pytest.skip(reason)
    rounds, engines = [], []
    for engine in ("torch", other, "torch"):
        done = shoal(
            *("run", "--solo", "--engine", engine, "--rounds", "1", "--model", model, "--home", tmp_path),
            *SMALL,
        )
        assert done.returncode == 0, done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines()]
        engines.append(events[0]["engine"]["name"])
        rounds += [event["round"] for event in events if event["event"] == "round"]
    assert (rounds, engines) == ([1, 2, 3], ["torch", other, "torch"])
