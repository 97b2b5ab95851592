from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from app.lab.arms import parse_arms
from app.lab.journal import JournalError, StudyJournal, read_study
from app.lab.plan import LabRound, StudyPlan
from app.lab.report.report import write_report
from app.lab.report.results import COSTS, at_equal_cost, summarise
from tests.lab.report.test_report import run
from tests.lab.rounds.test_experiment import PLAN

COMMAND = "./shoal lab --arms 8/0,4/4,8/0+ds --recipe faithful --seeds 4 --out x"
RARE = msgspec.structs.replace(PLAN, regime="rare")


def kept(folder: Path, runs: dict[str, list[list[LabRound]]], plan: StudyPlan = RARE) -> Path:
    """A study's folder as the lab leaves it: arm names and the records of seeds 0, 1, ..."""
    journal = StudyJournal(folder, plan)
    for arm in parse_arms(",".join(runs), "faithful"):
        for seed, records in enumerate(runs[arm.name]):
            with journal.open_run(arm, seed) as file:
                for record in records:
                    file.append(record)
                file.finish(plan.rounds)
    (folder / "summary.json").write_bytes(msgspec.json.encode({"command": COMMAND}))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return kept(
        tmp_path / "rare",
        {
            "8/0": [run([0.1, 0.1, 0.1]), run([0.1, 0.1, 0.12])],
            "4/4": [run([0.1, 0.2, 0.3], generated=50), run([0.1, 0.2, 0.32], generated=50)],
            "4/4@default": [run([0.1, 0.2, 0.3], generated=50), run([0.1, 0.2, 0.32], generated=50)],
            "8/0+ds": [run([0.1, 0.2, 0.3], generated=400), run([0.1, 0.2, 0.34], generated=400)],
        },
    )


def test_a_study_is_read_back_from_its_folder(folder: Path) -> None:
    study = read_study(folder)
    assert [arm.name for arm in study.arms] == ["8/0", "4/4", "8/0+ds", "4/4@default"]
    assert (study.plan, study.command, study.finished, study.planned) == (RARE, COMMAND, 8, 12)
    cut = folder / "rounds" / "4-4@faithful.seed1.jsonl"
    cut.write_bytes(cut.read_bytes()[:-20])  # as a kill leaves it
    assert read_study(folder).finished == 7 and list(read_study(folder).runs["4-4@faithful"]) == [0]


def test_a_folder_without_finished_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="no study"):
        read_study(tmp_path)
    StudyJournal(tmp_path, PLAN)
    with pytest.raises(JournalError, match="no finished run"):
        read_study(tmp_path)


def test_the_gain_is_a_share_of_the_baselines_area(folder: Path) -> None:
    study = read_study(folder)
    sharing = next(result for result in summarise(study.arms, study.runs).arms if result.arm == "4/4")
    # areas: 0.1 and 0.105 alone; 0.2 and 0.205 shared
    assert sharing.area_gain is not None and sharing.area_gain.mean == pytest.approx(0.405 / 0.205 - 1)
    assert sharing.area_gain.low <= sharing.area_gain.mean <= sharing.area_gain.high


def test_equal_cost_ends_where_the_thriftier_arm_does(folder: Path) -> None:
    study = read_study(folder)
    sharing, selecting = study.runs["4-4@faithful"], study.runs["8-0+ds@faithful"]
    outcome = at_equal_cost(sharing, selecting, COSTS["completions"])
    assert outcome is not None
    difference, completions = outcome
    assert completions == 200  # 4 rounds of 50; dynamic sampling spent 400 in the first alone
    # the sharing curve's own area, less that of the other between 0.1 and 0.1 + 0.1 * 200/800
    assert difference.mean == pytest.approx((0.2 + 0.205) / 2 - 0.1125)


def test_the_report_holds_every_study_and_its_pictures_lie_beside_the_records(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "about.md").write_text("Does it help?\n\nWhat did not work: patience.\n")
    out = tmp_path / "REPORT.md"
    assert write_report([folder], out) == out
    text = out.read_text(encoding="utf-8")
    assert "Does it help?" in text and "8 of 12 runs finished" in text
    assert "patience" not in text, "remarks stay beside the records"
    every = COMMAND.replace("8/0,4/4,8/0+ds", "8/0,4/4,8/0+ds,4/4@default")  # also what was run besides
    every = every.replace("--out x", f"--out {folder}")  # where the records lie now
    links = re.findall(r"\[.+?\]\((rare/.+?)\)", text)
    assert links == ["rare/curves.png", "rare/table.md", "rare/about.md"]
    assert (tmp_path / links[0]).read_bytes().startswith(b"\x89PNG")
    beside = (tmp_path / links[1]).read_text(encoding="utf-8")
    assert every in beside
    tables = re.findall(r"(?:^\|.*\n)+", beside, re.MULTILINE)
    assert tables and all(len({line.count("|") for line in table.splitlines()}) == 1 for table in tables)
    assert str(tmp_path) not in text.split("## Every number again")[0]


def test_what_is_closed_and_the_goals_stand_in_it_as_text(folder: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "section.md").write_text("## Study `closed`\n\nIts code is gone.\n")
    (tmp_path / "goals.md").write_text("## What it was to show\n\n| goal |\n")
    text = write_report([closed, folder], tmp_path / "REPORT.md").read_text(encoding="utf-8")
    parts = ["## What it was to show", "## Method", "## Study `rare`", "Its code is gone.", "## Limits"]
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)
