"""The loop on one page is an oracle: a real node alone, with the same identity, makes the same adapter."""

from __future__ import annotations

import os
from pathlib import Path

from safetensors.numpy import load_file

from app.lab import solo
from app.models.shelf import locate
from app.node.data.home import identity
from engines.models.folder import read_settings
from tests.e2e.shoal import shoal

ROUNDS, SEED = 10, 11


def test_a_node_alone_makes_the_adapter_of_the_solo_loop(tmp_path: Path) -> None:
    folder = locate("starter")
    levels = read_settings(folder).families
    home, own = tmp_path / "home", identity(tmp_path, SEED)
    said = list(solo.learn(folder, levels, ROUNDS, own, items=16, threads=1, save=tmp_path / "solo"))
    assert [line.split(":")[0] for line in said] == ["round 0", "round 10"]
    arguments = ("--engine", "torch", "--rounds", ROUNDS, "--seed", SEED, "--probe-questions", "16")
    done = shoal("run", "--solo", "--json", "--home", home, *map(str, arguments), env=one_thread())
    assert done.returncode == 0, done.stderr
    (checkpoint,) = home.glob(f"models/*/checkpoints/round-{ROUNDS:06}")
    ours, nodes = (load_file(place / "adapter_model.safetensors") for place in (tmp_path / "solo", checkpoint))
    assert ours.keys() == nodes.keys() and any(abs(values).max() > 1e-3 for values in ours.values())
    assert all((ours[name] == nodes[name]).all() for name in ours)


def one_thread() -> dict[str, str]:
    """Sums of several threads are added in another order each time."""

    return {**os.environ, "SHOAL_THREADS": "1", "OMP_NUM_THREADS": "1"}
