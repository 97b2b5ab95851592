"""A study on a real Ray cluster of two workers: the same as on this process, also when a worker is killed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import msgspec
import psutil
import pytest

from app.lab import study
from app.lab.arms import parse_arms
from app.lab.plan import StudyPlan
from app.lab.study import Dealer
from tests.lab.fake_swarm import FakeSwarm
from tests.lab.rounds.test_experiment import PLAN

pytest.importorskip("ray", reason="no Ray: ./shoal setup --ray installs it")
ARMS = parse_arms("4/0,2/2", "faithful")
SMALL = msgspec.structs.replace(PLAN, probe_items=8)


class Opens:
    """A made-up swarm on whatever worker it is. The first one with seed 0 waits to be killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, plan: StudyPlan, seed: int) -> FakeSwarm:
        note = self._folder / f"opened-{os.getpid()}-{time.monotonic_ns()}"
        note.write_text(str(seed))
        if seed == 0:
            try:
                (self._folder / "victim").open("x").close()
            except FileExistsError:
                return FakeSwarm(plan.nodes)
            os.kill(os.getpid(), signal.SIGKILL)
        return FakeSwarm(plan.nodes)


@pytest.mark.long
def test_a_killed_workers_run_goes_on_elsewhere(tmp_path: Path) -> None:
    import tests.lab.test_dealing as here  # by this name the workers find it

    dealt = study.conduct(
        SMALL, ARMS, range(2), tmp_path / "dealt", lambda plan, seed: FakeSwarm(plan.nodes), "",
        deal=Dealer("ray", here.Opens(tmp_path), 1),
    )  # fmt: skip
    opened = [(path.name.split("-")[1], path.read_text()) for path in tmp_path.glob("opened-*")]
    assert sorted(seed for _, seed in opened) == ["0", "0", "0", "1", "1"], "one of seed 0 was played twice"
    assert (tmp_path / "victim").exists() and len({pid for pid, _ in opened}) >= 2
    assert not [pid for pid, _ in opened if psutil.pid_exists(int(pid))], "the cluster ends with the study"
    alone = study.conduct(
        SMALL, ARMS, range(2), tmp_path / "alone", lambda plan, seed: FakeSwarm(plan.nodes), ""
    )
    timed = {"seconds", "cpu_seconds"}
    for arm in ("4/0", "2/2"):
        kept = [
            {name: value for name, value in one["arms"][arm].items() if name not in timed}
            for one in (dealt, alone)
        ]
        assert kept[0] == kept[1]
    assert dealt["complete"] and dealt["verdict"] == alone["verdict"]
