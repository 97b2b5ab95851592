"""The table of the families, with what a model solves of them."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec
import pytest

from app.bench import BenchError
from app.bench.runs import puzzles
from app.bench.runs.beginning import BaseScore
from app.sapo.families import FAMILIES
from app.sapo.questions import draw


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    puzzles.add_arguments(parser)
    return parser.parse_args(given)


def test_figures_are_kept_and_nothing_is_measured_twice(tmp_path: Path) -> None:
    given = arguments("gcd", "--items", "20", "--base", "starter", "--threads", "1", "--out", str(tmp_path))
    told: list[str] = []
    figures = puzzles.run(given, told.append)
    assert [line.split(",")[0] for line in told] == ["gcd"] * 5 + ["starter"]
    (base,) = (msgspec.convert(one, BaseScore) for one in figures["bases"])
    assert base.questions == 8 and 0 < base.pass_at_1 < base.any_of_8 <= 1

    told.clear()
    assert puzzles.run(given, told.append) == figures and not told
    head, _, line = (tmp_path / "table.md").read_text().splitlines()
    assert head.endswith("| starter |") and line.startswith("| gcd | numbers | 5 |")
    assert f"{base.pass_at_1:.0%}, {base.any_of_8:.0%}" in line


def test_contents_what_is_held_out_and_spellings_are_counted() -> None:
    coins = puzzles.measure(FAMILIES["coin_flip"], 0, 200)
    assert coins.contents < coins.texts < coins.questions == 200, "at least all heads are all heads"
    assert coins.contents <= coins.level_contents < 3 * coins.contents
    assert 0 < coins.held_out < coins.contents and 0.2 < coins.held_out_share < 0.5 and coins.refused == ()
    wrong = msgspec.structs.replace(FAMILIES["coin_flip"], solution=lambda entry: "2")
    assert puzzles.refused_spellings(wrong, [draw("coin_flip", 0, 5)]) == tuple(puzzles.SPELLINGS)


def test_who_cannot_begin_waits() -> None:
    level = puzzles.measure(FAMILIES["gcd"], 0, 20)
    bases = [
        BaseScore(model="a", family="gcd", questions=8),
        BaseScore(model="b", family="gcd", note="no worked example"),
    ]
    waiting = puzzles.FamilyFigures(levels=[level], bases=bases)
    assert list(puzzles.overview(waiting))[-1].startswith("| gcd (waiting) |")
    unknown = puzzles.FamilyFigures(levels=[level, puzzles.measure(FAMILIES["lcm"], 0, 20)], bases=bases)
    assert list(puzzles.overview(unknown))[-1].startswith("| lcm | "), "who was not asked is not waiting"
    one_right = msgspec.structs.replace(bases[0], pass_at_1=1 / 64, any_of_8=1 / 8)
    begun = puzzles.FamilyFigures(levels=[level], bases=[one_right, bases[1]])
    assert list(puzzles.overview(begun))[-1].startswith("| gcd | ")


def test_no_such_family() -> None:
    with pytest.raises(BenchError, match="no family rubiks"):
        puzzles.run(arguments("rubiks"), print)
