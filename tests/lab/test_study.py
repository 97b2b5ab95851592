"""A study goes on where it stopped, is the same on a real Ray cluster of two workers, also when a worker is
killed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from app.lab import study
from app.lab.arms import parse_arms
from app.lab.plan import LabRound, StudyPlan
from app.lab.study import ClusterRunner, StudyProgress
from app.sapo.scoring.sandbox import Sandbox
from tests.lab.fake_swarm import FakeSwarm
from tests.lab.rounds.test_experiment import PLAN

ARMS = parse_arms("4/0,2/2", "faithful")
SMALL = msgspec.structs.replace(PLAN, probe_items=8)


@pytest.fixture(scope="module")
def conduct() -> Iterator[Any]:
    """`conduct` with one scoring child for all tests: to start one takes seconds."""
    with Sandbox() as shared:
        yield partial(study.conduct, open_sandbox=lambda: nullcontext(shared))


class Power:
    """Opens fake swarms until the power goes."""

    def __init__(self, lasts: int = 99) -> None:
        self.opened: list[int] = []
        self._lasts = lasts

    def __call__(self, plan: StudyPlan, seed: int) -> FakeSwarm:
        if len(self.opened) == self._lasts:
            raise RuntimeError("the power went")
        self.opened.append(seed)
        return FakeSwarm(plan.nodes)


def test_a_study_goes_on_where_it_stopped_and_ends_as_if_it_never_had(conduct: Any, tmp_path: Path) -> None:
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    whole = conduct(SMALL, ARMS, range(2), straight, Power(), "")
    with pytest.raises(RuntimeError, match="power"):
        conduct(SMALL, ARMS, range(2), broken, Power(lasts=3), "")
    between = msgspec.json.decode((broken / "summary.json").read_bytes())
    assert not between["complete"] and between["arms"]["4/0"]["seeds"] == [0, 1]
    again = Power()
    resumed = conduct(SMALL, ARMS, range(2), broken, again, "")
    assert again.opened == [1]
    timed = {"seconds", "cpu_seconds"}
    for arm in ("4/0", "2/2"):
        kept = {name: value for name, value in whole["arms"][arm].items() if name not in timed}
        assert kept == {name: value for name, value in resumed["arms"][arm].items() if name not in timed}
    assert resumed["complete"] and resumed["verdict"] == whole["verdict"]


def test_a_finished_study_runs_nothing_and_can_be_widened(conduct: Any, tmp_path: Path) -> None:
    conduct(SMALL, ARMS[:1], range(1), tmp_path, Power(), "")
    conduct(SMALL, ARMS[:1], range(1), tmp_path, Power(lasts=0), "")
    wider = Power()
    summary = conduct(SMALL, ARMS, range(2), tmp_path, wider, "")
    assert wider.opened == [0, 1, 1]  # the other arm of seed 0, then both of seed 1
    assert summary["arms"]["2/2"]["seeds"] == [0, 1]


def test_progress_says_where_it_is_and_how_long_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    progress = StudyProgress(2, 3, 10)
    progress.show(ARMS[0], 0, 1, LabRound(round=5))
    progress.show(ARMS[0], 0, 1, LabRound(round=0, probe=None))
    assert capsys.readouterr().err == "1 of 3 runs are finished already and kept.\n"


def test_nothing_goes_to_standard_output(
    conduct: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conduct(SMALL, ARMS[:1], range(1), tmp_path, Power(), "")
    out, err = capsys.readouterr()
    assert out == "" and "run 1 of 1: 4/0 seed 0, round 4/4, held-out" in err


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
    pytest.importorskip("ray", reason="no Ray: ./shoal setup --ray installs it")
    import tests.lab.test_study as here  # by this name the workers find it

    dealt = study.conduct(
        SMALL, ARMS, range(2), tmp_path / "dealt", lambda plan, seed: FakeSwarm(plan.nodes), "",
        executor=ClusterRunner("ray", here.Opens(tmp_path), 1),
    )  # fmt: skip
    opened = [(path.name.split("-")[1], path.read_text()) for path in tmp_path.glob("opened-*")]
    assert sorted(seed for _, seed in opened) == ["0", "0", "0", "1", "1"], "one of seed 0 was played twice"
    assert (tmp_path / "victim").exists() and len({pid for pid, _ in opened}) >= 2
    assert not [pid for pid, _ in opened if psutil.pid_exists(int(pid))], "the cluster ends with the study"
    alone = study.conduct(
        SMALL,
        ARMS,
        range(2),
        tmp_path / "alone",
        lambda plan, seed: FakeSwarm(plan.nodes),
        "",
    )
    timed = {"seconds", "cpu_seconds"}
    for arm in ("4/0", "2/2"):
        kept = [
            {name: value for name, value in one["arms"][arm].items() if name not in timed}
            for one in (dealt, alone)
        ]
        assert kept[0] == kept[1]
    assert dealt["complete"] and dealt["verdict"] == alone["verdict"]
