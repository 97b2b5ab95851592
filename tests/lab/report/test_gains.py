"""Who gains and who pays, and what became of attackers, by worked examples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from app.lab.arms import parse_arm, parse_arms
from app.lab.journal import Study
from app.lab.plan import LabProbe, LabRound
from app.lab.report import gains, report
from tests.lab.rounds.test_experiment import PLAN, varied

ARMS = parse_arms(
    "2/0@default,2/2@default-guard,2/2@default-guard+foes=liar30,2/2@default-guard+foes=poison30,"
    "2/2@default+foes=poison30",
    "faithful",
)


def run(height: float, marked: float, extra: dict[str, float] | None = None) -> list[LabRound]:
    """Round 0 and two more; three nodes around a height, all answers of the last probe marked to a share."""

    def probe(share: float) -> LabProbe:
        heights = (height - 0.01, height, height + 0.01)
        return LabProbe(pass_at_1_N=heights, families={}, finished=1.0, worked=1.0, marked_N=(share,) * 3)

    return [
        LabRound(round=0, probe=probe(0.0)),
        LabRound(round=1, generated=10, generated_tokens=100, informative_peer=2.0, active=3, extra=extra),
        LabRound(
            round=2,
            generated=10,
            generated_tokens=200,
            finished=0.5,
            informative_peer=2.0,
            active=3,
            extra=extra,
            probe=probe(marked),
        ),
    ]


def study() -> Study:
    foes = {"foe_chosen": 3.0, "marked": 0.5}
    kept_out = {"honest_taken": 9.0, "honest_kept_out": 1.0, "foe_taken": 0.0, "foe_kept_out": 4.0}
    alone, clean, lied_to, bare, defended = ARMS
    return Study(
        folder=Path("poison"),
        plan=msgspec.structs.replace(PLAN, rounds=200),
        arms=ARMS,
        runs={
            key: dict.fromkeys(range(2), one)
            for key, one in {
                alone.key: run(0.3, 0.0),
                clean.key: run(0.4, 0.0),
                lied_to.key: run(0.4, 0.0, {"foe_chosen": 0.0, "marked": 0.0}),
                bare.key: run(0.2, 0.6, foes),
                defended.key: run(0.4, 0.0, foes | kept_out | {"marked": 0.0}),
            }.items()
        },
        command="",
        about="",
    )


def test_the_table_by_hand_and_left_out_without_attackers() -> None:
    rows = [line.strip("| ").split(" | ") for line in gains.attackers_table(study()).splitlines()[2:]]
    assert [row[0] for row in rows] == [arm.name for arm in ARMS]
    # own samples marked, tokens an answer, finished, chosen 6 of 12, kept out 1 of 10 and 4 of 4
    assert rows[-1][2:] == ["0.0 %", "15.0", "25.0 %", "50.0 %", "10.0 %", "100.0 %"]
    assert rows[-2][1].startswith("60.0 %") and rows[-2][2] == "50.0 %" and rows[-2][-2:] == ["–", "–"]
    whole = study()
    plain = replace(whole, arms=ARMS[:2], runs={arm.key: whole.runs[arm.key] for arm in ARMS[:2]})
    assert gains.attackers_table(plain) == ""


SIZED = varied(models=("big", "little", "big"))


def run_of(*shares_N: tuple[float, ...]) -> list[LabRound]:
    """Rounds 0, 2 and 4 are measured, with these shares node by node."""
    measured = dict(zip((0, 2, 4), shares_N, strict=True))
    return [
        LabRound(
            round=number,
            probe=LabProbe(
                pass_at_1_N=measured[number], families={}, finished=1.0, worked=0.0, pass_at_8_N=(0.0,) * 3
            )
            if number in measured
            else None,
        )
        for number in range(5)
    ]


def alone(gained: float = 0.0) -> list[LabRound]:
    return run_of((0.2, 0.1, 0.2), (0.2, 0.1, 0.2), (0.2 + gained, 0.1, 0.2 + gained))


def shared() -> list[LabRound]:
    return run_of((0.2, 0.1, 0.2), (0.2, 0.3, 0.2), (0.1, 0.3, 0.1))


def test_little_gains_and_big_pays() -> None:
    arms = parse_arms("8/0,4/4", "faithful")
    runs = {"8-0@faithful": {0: alone(), 1: alone()}, "4-4@faithful": {0: shared(), 1: shared()}}
    found = {(f.arm, f.kind.name): f for f in gains.fates(SIZED, arms, runs, "8/0")}
    assert [kind.nodes for kind in gains.kinds(SIZED, arms[0])] == [(0, 2), (1,)]
    little, big = found["4/4", "little"], found["4/4", "big"]
    # little: trapezes (0.1 + 0.3) / 2 and 0.3, so 0.25 high instead of 0.1; big: 0.2 and 0.15
    assert little.height.mean == pytest.approx(0.25) and big.height.mean == pytest.approx(0.175)
    assert little.height_difference and little.height_difference.mean == pytest.approx(0.15)
    assert big.height_difference and big.height_difference.mean == pytest.approx(-0.025)
    assert little.final_difference and little.final_difference.mean == pytest.approx(0.2)
    assert big.final_difference and big.final_difference.mean == pytest.approx(-0.1)
    assert (little.start.mean, little.kind.rounds, little.against) == (pytest.approx(0.1), 4, "8/0")
    assert found["8/0", "big"].against is None and found["8/0", "big"].height_difference is None


def test_only_seeds_of_both_arms_are_compared() -> None:
    arms = parse_arms("8/0,4/4", "faithful")
    runs = {"8-0@faithful": {1: alone()}, "4-4@faithful": {0: alone(0.6), 1: shared()}}
    big = next(f for f in gains.fates(SIZED, arms, runs, "8/0") if (f.arm, f.kind.name) == ("4/4", "big"))
    assert big.final.mean == pytest.approx((0.8 + 0.1) / 2)
    assert big.final_difference and big.final_difference.mean == pytest.approx(-0.1)


def test_the_slow_are_compared_with_slow_ones_alone_where_those_were_run() -> None:
    plan = varied(nodes=3)
    arms = parse_arms("8/0,4/4+paces=2,8/0+paces=2,4/4", "faithful")
    assert [(k.name, k.nodes, k.rounds) for k in gains.kinds(plan, arms[1])] == [
        ("fast", (0, 1), 4.0),
        ("slow", (2,), 2.0),
    ]
    runs = {arm.key: {0: alone()} for arm in arms}
    against = {f.arm: f.against for f in gains.fates(plan, arms, runs, "8/0")}
    assert against == {"8/0": None, "4/4+paces=2": "8/0+paces=2", "8/0+paces=2": "8/0", "4/4": "8/0"}
    del runs["8-0@faithful+paces=2"]
    assert {f.arm: f.against for f in gains.fates(plan, arms, runs, "8/0")}["4/4+paces=2"] == "8/0"


def test_those_that_stay_are_there_more_often_than_those_that_leave() -> None:
    stays, leaves = gains.kinds(varied(nodes=6, rounds=20), parse_arm("4/4+churn=2", "faithful"))
    assert (stays.name, leaves.name) == ("stays", "leaves") and 0 in stays.nodes
    assert sorted([*stays.nodes, *leaves.nodes]) == list(range(6))
    assert 20 >= stays.rounds > leaves.rounds > 0 and 3 * (stays.rounds + leaves.rounds) == 3 * 20


def test_sizes_and_paces_together_are_kinds_of_both() -> None:
    found = gains.kinds(varied(nodes=4, models=("big", "little") * 2), parse_arm("4/4+paces=4", "faithful"))
    assert [kind.name for kind in found] == ["big, fast", "little, fast", "big, slow", "little, slow"]


def test_the_table_is_there_where_nodes_differ_and_only_there(tmp_path: Path) -> None:
    arms = parse_arms("8/0,4/4", "faithful")
    runs = {arm.key: {0: alone()} for arm in arms}
    assert gains.lines(varied(), arms, runs, "8/0") == ""
    table = [line for line in gains.lines(SIZED, arms, runs, "8/0").splitlines() if line.startswith("|")]
    assert len(table) == 2 + 4 and len({line.count("|") for line in table}) == 1
    assert "2 big" in table[2] and "+0.0 [+0.0, +0.0]" in table[4]
    report.write(tmp_path, SIZED, arms, runs, "./shoal lab", complete=True)
    assert "big (2 nodes), little (1 node)" in (tmp_path / "table.md").read_text(encoding="utf-8")
