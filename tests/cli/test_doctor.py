from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from app.cli.doctor import _identity, _told_identity
from app.swarm.identity.identity import Identity
from app.swarm.identity.storage import keep_plain

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
    assert engines[told["engine"]]["usable"] and told["model"] == "starter" and told["dtype"]
    assert told["reason"].startswith(engines[told["engine"]]["reason"])
    assert told["cpu"]["features"] and isinstance(told["gpu"], list) and told["trials"] == {}
    assert told["memory"]["total_mb"] > 100 and told["disk"]["free_mb"] > 0 and told["cpu"]["cores"] >= 1
    assert told["disk"]["home"] == str(tmp_path / "not yet" / "there")
    assert any("PyTorch computes with" in said for said in told["cpu"]["instructions"])
    assert told["packages"]["torch"].startswith("2.13.0")
    assert told["identity"] == {}
    assert not (tmp_path / "not yet").exists()


def test_the_place_of_the_key_is_told_and_never_the_key(tmp_path: Path) -> None:
    assert _identity(tmp_path) == {} and "none yet" in _told_identity({})
    mine = Identity.new()
    file = keep_plain(mine, tmp_path)
    found = _identity(tmp_path)
    assert found == {"name": mine.name, "key": f"in {file}, which only you can read."}
    assert mine.name in _told_identity(found) and mine.seed().hex() not in str(found)
    (tmp_path / "identity.json").write_text("{")
    assert "identity restore" in _told_identity(_identity(tmp_path))
