from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.shoal import ROOT

STARTER = ROOT / "resources" / "starter"

MAKE_TINY = """
import sys
from pathlib import Path
from app.lab.starter.pretrain import PretrainPlan, new_model, save
plan = PretrainPlan(hidden=32, layers=1, heads=2, kv_heads=1, feed_forward=64)
save(new_model(plan), plan, Path(sys.argv[1]))
"""


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter; while there is none, an untrained model of its kind, which solves nothing."""
    if (STARTER / "model.safetensors").exists():
        return STARTER
    return make_tiny(tmp_path_factory.mktemp("models") / "tiny")


def make_tiny(folder: Path) -> Path:
    """An untrained model with the starter's vocabulary, much smaller than the starter."""
    subprocess.run([sys.executable, "-c", MAKE_TINY, str(folder)], check=True, cwd=ROOT)
    (folder / "shoal.json").write_text(
        '{"families": {"chain_sum": 0, "gcd": 0}, "max_tokens": 48, "groups": 4}'
    )
    return folder
