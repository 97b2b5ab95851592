"""What became of attackers, by worked examples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec

from app.lab.arms import parse_arms
from app.lab.journal import Study
from app.lab.plan import LabProbe, LabRound
from app.lab.report import report
from tests.lab.rounds.test_experiment import PLAN

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
    rows = [line.strip("| ").split(" | ") for line in report.attackers_table(study()).splitlines()[2:]]
    assert [row[0] for row in rows] == [arm.name for arm in ARMS]
    # own samples marked, tokens an answer, finished, chosen 6 of 12, kept out 1 of 10 and 4 of 4
    assert rows[-1][2:] == ["0.0 %", "15.0", "25.0 %", "50.0 %", "10.0 %", "100.0 %"]
    assert rows[-2][1].startswith("60.0 %") and rows[-2][2] == "50.0 %" and rows[-2][-2:] == ["–", "–"]
    whole = study()
    plain = replace(whole, arms=ARMS[:2], runs={arm.key: whole.runs[arm.key] for arm in ARMS[:2]})
    assert report.attackers_table(plain) == ""
