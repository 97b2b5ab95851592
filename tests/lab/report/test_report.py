from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import msgspec
import pytest
from PIL import Image

from app.lab.arms import parse_arms
from app.lab.plan import LabProbe, LabRound
from app.lab.report import report
from app.lab.report.plot import draw
from app.lab.report.results import ArmResult, Results, summarise
from tests.lab.rounds.test_experiment import PLAN

ARMS = parse_arms("8/0,4/4,2/6+ds,8/0!shuffled", "faithful")


def run(heights: list[float], *, generated: int = 100, batch: float = 0.2, own: float = 0.1) -> list[LabRound]:
    """Rounds 0 to 4, measured at 0, 2 and 4; three nodes at the given mean heights and 0.01 beside them."""

    def probe(number: int, height: float) -> LabProbe:
        return LabProbe(
            pass_at_1_N=(height - 0.01, height, height + 0.01),
            families={"chain_sum": height},
            finished=1.0,
            worked=0.25 * number,
        )

    measured = dict(zip((0, 2, 4), heights, strict=True))
    return [
        LabRound(
            round=number,
            generated=generated if number else 0,
            generated_tokens=10 * generated if number else 0,
            informative_own=1.0,
            batch_reward=batch if number else 0.0,
            own_reward=own if number else 0.0,
            seconds=1.5 if number else 0.0,
            probe=probe(number, measured[number]) if number in measured else None,
        )
        for number in range(5)
    ]


def study() -> dict[str, dict[int, list[LabRound]]]:
    return {
        "8-0@faithful": {0: run([0.1, 0.1, 0.2]), 1: run([0.1, 0.2, 0.3]), 2: run([0.1, 0.1, 0.25])},
        "4-4@faithful": {
            seed: run([0.1, 0.2, height], generated=50, batch=0.4)
            for seed, height in enumerate((0.3, 0.42, 0.36))
        },
        "2-6+ds@faithful": {
            seed: run([0.1, 0.1, height], generated=70) for seed, height in enumerate((0.1, 0.3, 0.25))
        },
        "8-0@faithful!shuffled": {seed: run([0.1, 0.1, 0.1]) for seed in range(3)},
    }


def found(results: Results, name: str) -> ArmResult:
    return next(result for result in results.arms if result.arm == name)


def test_one_arm_by_hand() -> None:
    result = found(summarise(ARMS, study()), "4/4")
    assert result.held_out_start.mean == pytest.approx(0.1)
    assert result.held_out_final.mean == pytest.approx((0.3 + 0.42 + 0.36) / 3)
    assert result.held_out_final.low == pytest.approx(0.3, abs=0.012)
    # area of seed 0: (0.15 * 2 + 0.25 * 2) / 4 = 0.2, then 0.23 and 0.215
    assert result.held_out_area.mean == pytest.approx((0.2 + 0.23 + 0.215) / 3)
    assert (result.worked_start, result.worked_final) == (0.0, 1.0)
    assert result.generated_completions == 200 and result.generated_tokens == 2000
    # the paper's column: 3 nodes, 4 rounds, 0.4 each
    assert result.cumulative_training_batch_reward == pytest.approx(3 * 4 * 0.4)
    assert result.cumulative_own_reward == pytest.approx(3 * 4 * 0.1)
    assert (result.informative_own, result.informative_peer) == (1.0, 0.0)


def test_differences_are_paired_by_seed() -> None:
    results = summarise(ARMS, study())
    assert results.baseline == "8/0" and found(results, "8/0").difference is None
    sharing = found(results, "4/4")
    assert sharing.difference is not None
    assert sharing.difference.mean == pytest.approx((0.1 + 0.12 + 0.11) / 3)
    # paired, the seeds agree within two points although their heights differ by twelve
    assert sharing.difference.low == pytest.approx(0.1) and sharing.difference.high == pytest.approx(0.12)
    assert sharing.seeds_ahead == 3
    dynamic = found(results, "2/6+ds")
    assert dynamic.difference is not None and dynamic.difference.high <= 0 and dynamic.seeds_ahead == 0


def test_a_winning_control_is_never_the_winner() -> None:
    runs = study()
    runs["8-0@faithful!shuffled"] = {seed: run([0.1, 0.5, 0.9]) for seed in range(3)}
    verdict = summarise(ARMS, runs).verdict
    assert "4/4 is highest" in verdict and "went from 10.0 % to 90.0 %" in verdict


def test_the_table_has_the_papers_columns_and_ours(tmp_path: Path) -> None:
    report.write(tmp_path, PLAN, ARMS, study(), "./shoal lab", complete=True)
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    gains, inside, families = (
        [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        for table in tables
    )
    for head, rule, *body in (gains, inside, families):
        assert {len(row) for row in body} == {len(head)} and set(rule) == {"---"}
    by_arm = {row[0]: dict(zip(gains[0], row, strict=True)) for row in gains[2:]}
    assert list(by_arm) == ["8/0", "4/4", "2/6+ds", "8/0!shuffled"]
    assert (
        by_arm["4/4"]["last round"].startswith("36.0 % [") and by_arm["4/4"]["completions generated"] == "200"
    )
    # areas .2, .23, .215 less .125, .2, .1375
    assert by_arm["4/4"]["difference to 8/0, points"].startswith("+6.1 [")
    by_arm = {row[0]: dict(zip(inside[0], row, strict=True)) for row in inside[2:]}
    paper = "training batch, the paper's sum; of own answers"
    assert by_arm["4/4"][paper] == "4.8 (+100 %), 1.2" and by_arm["8/0"][paper] == "2.4, 1.2"
    assert by_arm["4/4"]["worked answers"] == "0 → 100 %" and families[3][:2] == ["4/4", "36.0"]
    assert "`./shoal lab`" in text


def test_all_four_files_are_written(tmp_path: Path) -> None:
    summary = report.write(tmp_path, PLAN, ARMS, study(), "./shoal lab --arms x", complete=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "curves.csv",
        "curves.png",
        "summary.json",
        "table.md",
    ]
    kept = msgspec.json.decode((tmp_path / "summary.json").read_bytes())
    assert kept["complete"] and kept["verdict"] == summary["verdict"] and kept["config"]["nodes"] == 3
    assert kept["command"] == "./shoal lab --arms x" and kept["versions"]["reasoning-gym"]
    assert kept["arms"]["4/4"]["difference"]["mean"] == pytest.approx(0.11)


def test_the_curves_have_a_row_for_every_arm_seed_and_round(tmp_path: Path) -> None:
    report.write(tmp_path, PLAN, ARMS, study(), "", complete=True)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "curves.csv").read_text())))
    assert len(rows) == 4 * 3 * 5
    assert len({(row["arm"], row["seed"], row["round"]) for row in rows}) == len(rows)
    row = next(row for row in rows if (row["arm"], row["seed"], row["round"]) == ("4/4", "1", "4"))
    assert (row["held_out_pass_at_1"], row["generated_so_far"], row["seconds_so_far"]) == ("0.42", "200", "6.0")
    assert row["held_out_by_node"] == "0.4100 0.4200 0.4300"
    assert next(row for row in rows if row["round"] == "1")["held_out_pass_at_1"] == ""


def test_the_picture_is_a_wide_png_with_something_in_it() -> None:
    picture = Image.open(io.BytesIO(draw(ARMS, study())))
    assert picture.format == "PNG" and picture.width > 2.5 * picture.height
    colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 24) or []}
    assert {(34, 34, 34), (0, 114, 178), (213, 94, 0), (153, 153, 153)} <= colours
