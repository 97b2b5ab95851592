"""A study goes on where it stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.lab import study
from app.lab.arms import parse_arms
from app.lab.plan import LabRound, StudyPlan, digest
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


def test_nothing_goes_to_standard_output(
    conduct: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conduct(SMALL, ARMS[:1], range(1), tmp_path, Power(), "")
    out, err = capsys.readouterr()
    assert out == "" and "run 1 of 1: 4/0 seed 0, round 4/4, held-out" in err


def test_a_damaged_run_or_one_of_another_length_counts_as_not_there(tmp_path: Path) -> None:
    records = [LabRound(round=number) for number in range(SMALL.rounds + 1)]
    file = tmp_path / "rounds" / f"{ARMS[0].key}.seed0.json"
    file.parent.mkdir()
    for content in (
        b"",
        b"\xff\x00 not json",
        msgspec.json.encode(records[:-1]),
        msgspec.json.encode(records)[:-9],
    ):
        file.write_bytes(content)
        assert study.read_run(tmp_path, SMALL, ARMS[0], 0) is None
    file.write_bytes(msgspec.json.encode(records))
    assert study.read_run(tmp_path, SMALL, ARMS[0], 0) == records
    assert study.read_run(tmp_path, SMALL, ARMS[0], 1) is None is study.read_run(tmp_path, SMALL, ARMS[1], 0)


def test_another_plan_and_a_foreign_folder_are_refused(conduct: Any, tmp_path: Path) -> None:
    conduct(SMALL, ARMS[:1], range(1), tmp_path / "out", Power(), "")
    with pytest.raises(study.StudyError, match=r"learning_rate 0\.001 there, 0\.002 now"):
        conduct(
            msgspec.structs.replace(SMALL, learning_rate=0.002), ARMS, range(1), tmp_path / "out", Power(), ""
        )
    (tmp_path / "file").write_text("mine")
    (tmp_path / "study.json").write_text("{")
    for folder in (tmp_path / "file", tmp_path):
        with pytest.raises(study.StudyError):
            conduct(SMALL, ARMS, range(1), folder, Power(), "")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_models_digest_follows_its_weights(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "config.json").write_bytes(b"{}")
    first = digest(tmp_path)
    (tmp_path / "README.md").write_bytes(b"about")
    assert digest(tmp_path) == first
    (tmp_path / "model.safetensors").write_bytes(b"Weights")
    assert digest(tmp_path) != first
