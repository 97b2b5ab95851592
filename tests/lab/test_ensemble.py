"""Experts in the report: what is read back, how ways are compared, and what each number is."""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

from app.lab.document import write_report
from app.lab.ensemble import CSV, as_csv, is_ensemble, read_ensemble, section
from app.lab.experts import FILE, WAYS, Share, Trained
from app.lab.journal import JournalError
from tests.lab.test_experts import PLAN


def one(allocation: str, seed: int, solved: dict[str, float]) -> Trained:
    """Both families are solved alike."""
    return Trained(
        allocation=allocation,
        seed=seed,
        shares={"chain_sum": Share(rounds=3, rank=4), "gcd": Share(rounds=7, rank=16)},
        solved=solved,
        families={way: {"chain_sum": solved[way], "gcd": solved[way]} for way in WAYS},
        routed=0.75,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / FILE).write_bytes(msgspec.json.encode(PLAN))
    (tmp_path / "summary.json").write_bytes(b'{"command": "./shoal lab experts --seeds 2"}')
    for seed in (0, 1):
        solved = {way: 0.2 + 0.1 * number for number, way in enumerate(WAYS)}
        solved["generalist"] += 0.02 * seed
        for allocation in ("equal", "unequal"):
            made = one(allocation, seed, solved)
            (tmp_path / f"{allocation}.seed{seed}.json").write_bytes(msgspec.json.encode(made))
    return tmp_path


def test_every_way_is_compared_with_the_generalist_of_its_seed(folder: Path) -> None:
    text = section(read_ensemble(folder))
    assert "| generalist | 2 | 21.0 % [20.0, 22.0] | – | – | – |" in text
    # .4 against .2 and .22 of the generalist: 20 and 18 points; against its vote's .3: ten
    by_family = "40.0 % [40.0, 40.0] | +19.0 [+18.0, +20.0] | +10.0 [+10.0, +10.0] | – |"
    by_prompt = "50.0 % [50.0, 50.0] | +29.0 [+28.0, +30.0] | +20.0 [+20.0, +20.0] | 75 % |"
    assert f"| equal experts, by family | 2 | {by_family}" in text
    assert f"| unequal experts, by prompt | 2 | {by_prompt}" in text
    assert text.count("| generalist, vote |") == 2  # once a table: both allocations have the same
    assert "- unequal: chain_sum 3 at rank 4, gcd 7 at rank 16" in text


def test_the_raw_numbers_have_a_row_each(folder: Path) -> None:
    rows = list(csv.DictReader(as_csv(read_ensemble(folder)).splitlines()))
    assert len(rows) == 2 * 2 * len(WAYS) * 3
    (row,) = [
        row
        for row in rows
        if (row["allocation"], row["seed"], row["way"], row["family"]) == ("equal", "1", "by vote", "gcd")
    ]
    assert float(row["held_out_pass_at_1"]) == pytest.approx(0.6) and row["rank"] == "16"


def test_the_whole_report_has_the_experts_behind_the_studies(folder: Path, tmp_path: Path) -> None:
    out = write_report([folder], tmp_path / "REPORT.md")
    text = out.read_text(encoding="utf-8")
    assert text.index("by vote") < text.index("## Limits") < text.index("./shoal lab experts --seeds 2")
    assert f"./shoal lab report {folder}" in text and (folder / CSV).is_file()


def test_a_folder_without_results_or_with_a_broken_one_is_refused(folder: Path, tmp_path: Path) -> None:
    assert is_ensemble(folder)
    (folder / "equal.seed0.json").write_bytes(b"{")
    with pytest.raises(JournalError, match="make them anew"):
        read_ensemble(folder)
    for file in folder.glob("*.seed*"):
        file.unlink()
    with pytest.raises(JournalError, match="no finished experts"):
        read_ensemble(folder)
