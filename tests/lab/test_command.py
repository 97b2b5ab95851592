"""The command as people run it: a real process, a tiny untrained model, kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from app.lab.plan import Round
from app.lab.starter.pretrain import Plan, new_model, save

ROOT = Path(__file__).resolve().parents[2]
SMALL = (
    *("--families", "chain_sum", "--nodes", "2", "--rounds", "3", "--seeds", "2", "--group", "2"),
    *("--max-tokens", "4", "--probe-every", "2", "--probe-items", "4", "--rank", "2", "--threads", "1"),
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    plan = Plan(hidden=16, layers=1, heads=2, kv_heads=1, feed_forward=16)
    save(new_model(plan), plan, folder)
    return folder


def lab(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "app.cli", "lab", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str | Path) -> tuple[int, str, str]:
    process = lab(*arguments)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_a_study_survives_kill_9_and_ends_with_whole_files(model: Path, tmp_path: Path) -> None:
    arguments = ("--model", model, "--arms", "2/0,1/1@default", "--out", tmp_path / "study", *SMALL, "--json")
    rounds = tmp_path / "study" / "rounds"
    for files in (1, 2, 3):
        process = lab(*arguments)
        deadline = time.monotonic() + 100
        while process.poll() is None and time.monotonic() < deadline:
            if rounds.is_dir() and len(list(rounds.iterdir())) >= files:
                break
            time.sleep(0.01)
        assert process.poll() is None, process.stderr and process.stderr.read()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        for path in (tmp_path / "study").glob("*.json"):
            json.loads(path.read_bytes())
    code, out, err = run(*arguments)
    assert code == 0, err
    summary = json.loads(out)  # one object, nothing else
    assert summary["complete"] and list(summary["arms"]) == ["2/0", "1/1@default"]
    assert all(arm["seeds"] == [0, 1] for arm in summary["arms"].values())
    assert summary == json.loads((tmp_path / "study" / "summary.json").read_bytes())
    for path in rounds.iterdir():
        *records, end = path.read_bytes().splitlines()
        assert [msgspec.json.decode(line, type=Round).round for line in records] == [0, 1, 2, 3]
        assert json.loads(end) == {"event": "end", "rounds": 3}
    assert {"summary.json", "curves.csv", "curves.png", "table.md"} <= {
        p.name for p in (tmp_path / "study").iterdir()
    }
    code, out, err = run(*arguments)
    assert code == 0 and json.loads(out)["complete"] and "4 of 4 runs are finished already" in err
    code, out, err = run(*arguments[:-1], "--learning-rate", "0.123")
    assert (code, out) == (2, "") and "holds a study with other settings (learning_rate" in err


def test_dynamic_sampling_and_the_control_run_on_a_real_engine(model: Path, tmp_path: Path) -> None:
    code, out, err = run(
        "--model", model, "--arms", "1/1+ds,1/1!shuffled", "--out", tmp_path, *SMALL, "--attempts", "2"
    )
    assert code == 0, err
    assert out.startswith("Only 1/1+ds was run") and "| 1/1!shuffled |" in out
    assert "chain_sum level" in out


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (["--arms", "8"], "is no arm"),
        (["--arms", "8/0@best"], "no recipe called 'best'"),
        (["--recipe", "best"], "no recipe called 'best'"),
        (["--families", "chess"], "no family called 'chess'"),
        (["--levels", "chain_sum=99"], "has levels 0 to"),
        (["--levels", "chain_sum"], "is no level"),
        (["--families", "gcd", "--levels", "lcm=1"], "not among the --families"),
        (["--seeds", "0"], "--seeds must be at least 1"),
        (["--nodes", "0"], "--nodes must be at least 1"),
        (["--nodes", "1", "--arms", "4/4"], "has no peers"),
        (["--group", "1"], "--group must be at least 2"),
        (["--probe-every", "0"], "--probe-every must be at least 1"),
        (["--learning-rate", "nan"], "--learning-rate must lie between"),
        (["--learning-rate", "3"], "--learning-rate must lie between"),
        (["--model", "/no/such/model"], "/no/such/model"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(
    wrong: list[str], says: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from app.cli.__main__ import main

    code = main(["lab", "--model", str(model), "--out", str(tmp_path / "out"), *wrong])
    out, err = capsys.readouterr()
    assert code == 2 and out == ""
    assert says in err and err.count("\n") == 1 and err.startswith("shoal lab: ")
    assert not (tmp_path / "out").exists()


def test_levels_choose_families_and_fall_back_to_the_models() -> None:
    from app.cli.lab import _levels

    own = {"gcd": 1, "lcm": 2}
    assert _levels(None, None, own) == own
    assert _levels("lcm,bf", None, own) == {"lcm": 2, "bf": 0}
    assert _levels(None, "chain_sum=1", own) == {"chain_sum": 1}
    assert _levels("gcd,lcm", "gcd=0", own) == {"gcd": 0, "lcm": 2}
