"""The table of the families, with what a model solves of them."""

from __future__ import annotations

import argparse

import msgspec
import pytest

from app.bench import BenchError
from app.bench.runs import puzzles
from app.sapo.families import FAMILIES
from app.sapo.questions import draw


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    puzzles.add_arguments(parser)
    return parser.parse_args(given)


def test_every_level_is_measured() -> None:
    told: list[str] = []
    figures = puzzles.run(arguments("gcd", "--items", "20"), told.append)
    assert [one["level"] for one in figures["levels"]] == [0, 1, 2, 3, 4] and len(told) == 5
    head, *lines = puzzles.table(figures)
    assert head.startswith("family") and all(line.startswith("gcd") for line in lines) and len(lines) == 5


def test_contents_what_is_held_out_and_spellings_are_counted() -> None:
    coins = puzzles.measure(FAMILIES["coin_flip"], 0, 200)
    assert coins.contents < coins.texts < coins.questions == 200, "at least all heads are all heads"
    assert coins.contents <= coins.level_contents < 3 * coins.contents
    assert 0 < coins.held_out < coins.contents and 0.2 < coins.held_out_share < 0.5 and coins.refused == ()
    wrong = msgspec.structs.replace(FAMILIES["coin_flip"], solution=lambda entry: "2")
    assert puzzles.refused_spellings(wrong, [draw("coin_flip", 0, 5)]) == tuple(puzzles.SPELLINGS)


def test_no_such_family() -> None:
    with pytest.raises(BenchError, match="no family rubiks"):
        puzzles.run(arguments("rubiks"), print)
