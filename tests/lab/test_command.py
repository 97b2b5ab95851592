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

from app.cli.__main__ import main
from app.cli.lab import _levels
from app.lab.plan import LabRound
from app.lab.starter.pretrain import PretrainPlan, new_model, save

ROOT = Path(__file__).resolve().parents[2]
ARMS = ["2/0", "1/1+ds@default", "1/1!shuffled"]
SMALL = (
    *("--families", "chain_sum", "--nodes", "2", "--rounds", "3", "--seeds", "1", "--group", "2"),
    *("--max-tokens", "4", "--probe-every", "2", "--probe-items", "4", "--rank", "2", "--threads", "1"),
    *("--arms", ",".join(ARMS), "--attempts", "2", "--json"),
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    plan = PretrainPlan(hidden=16, layers=1, heads=2, kv_heads=1, feed_forward=16)
    save(new_model(plan), plan, folder)
    return folder


def lab(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "app.cli", "lab", *arguments],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
def test_a_study_survives_kill_9_and_ends_with_whole_files(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "study"
    arguments = ("--model", str(model), "--out", str(out), *SMALL)
    rounds = out / "rounds"
    for files in (1, 2):  # the second run is cut off, then the last
        process = lab(*arguments)
        while process.poll() is None and not (rounds.is_dir() and len(list(rounds.iterdir())) >= files):
            time.sleep(0.01)
        assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        for path in out.glob("*.json"):
            json.loads(path.read_bytes())

    process = lab(*arguments)
    printed, err = process.communicate()
    assert process.returncode == 0, err
    summary = json.loads(printed)  # one object and nothing else
    assert summary["complete"] and list(summary["arms"]) == ARMS
    assert summary == json.loads((out / "summary.json").read_bytes())
    assert {"summary.json", "curves.csv", "curves.png", "table.md"} <= {path.name for path in out.iterdir()}
    assert len(list(rounds.iterdir())) == 3
    for path in rounds.iterdir():
        records = msgspec.json.decode(path.read_bytes(), type=list[LabRound])
        assert [record.round for record in records] == [0, 1, 2, 3]

    assert main(["lab", *arguments]) == 0
    again, err = capsys.readouterr()
    assert json.loads(again) == summary and "3 of 3 runs are finished already" in err
    assert main(["lab", *arguments, "--learning-rate", "0.123"]) == 2
    nothing, err = capsys.readouterr()
    assert nothing == "" and "holds a study with other settings (learning_rate" in err


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
        (["--nodes", "1", "--arms", "4/4"], "has no peers"),
        (["--learning-rate", "nan"], "--learning-rate must lie between"),
        (["--learning-rate", "3"], "--learning-rate must lie between"),
        (["--model", "/no/such/model"], "/no/such/model"),
        (["--arms", "4/4+foes=burglars30"], "no attackers called"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(
    wrong: list[str], says: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["lab", "--model", str(model), "--out", str(tmp_path / "out"), *wrong])
    out, err = capsys.readouterr()
    assert code == 2 and out == ""
    assert says in err and err.count("\n") == 1 and err.startswith("shoal lab: ")
    assert not (tmp_path / "out").exists()


def test_levels_choose_families_and_fall_back_to_the_models() -> None:
    own = {"gcd": 1, "lcm": 2}
    assert _levels(None, None, own) == own
    assert _levels("lcm,bf", None, own) == {"lcm": 2, "bf": 0}
    assert _levels(None, "chain_sum=1", own) == {"chain_sum": 1}
    assert _levels("gcd,lcm", "gcd=0", own) == {"gcd": 0, "lcm": 2}
