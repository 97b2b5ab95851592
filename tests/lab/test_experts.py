"""Experts: who gets how much, how they vote, and the whole comparison on the starter."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("torch")

from app.lab.experts import RANKS, WAYS, conduct, equal, table, unequal, vote
from app.lab.plan import Plan
from app.sapo.questions import VERSION
from app.sapo.sandbox import Sandbox
from app.sapo.scoring import score_group
from engines.models import locate

PLAN = Plan(
    model="starter",
    weights="",
    questions=VERSION,
    levels={"chain_sum": 1, "gcd": 1},
    nodes=1,
    rounds=2,
    group=2,
    learning_rate=1e-3,
    rank=None,
    max_tokens=24,
    probe_every=1,
    probe_items=8,
    window=None,
    attempts=1,
)


def test_both_allocations_spend_the_same_budget() -> None:
    solved = {"a": 0.9, "b": 0.6, "c": 0.3, "d": 0.0}
    assert sum(share.rounds for share in equal(list(solved), 100).values()) == 100
    given = unequal(solved, 100)
    assert sum(share.rounds for share in given.values()) == pytest.approx(100, abs=2)
    assert (
        given["d"].rounds > given["a"].rounds and given["d"].rank == RANKS[-1] and given["a"].rank == RANKS[0]
    )


def test_families_that_are_all_solved_still_get_something() -> None:
    assert all(share.rounds >= 1 for share in unequal({"a": 1.0, "b": 1.0}, 10).values())


def test_silence_does_not_win_a_vote() -> None:
    assert vote([None, None, "3", None]) == 2


def test_all_ways_are_measured_and_nothing_is_made_twice(tmp_path: Path) -> None:
    told: list[str] = []
    with Sandbox() as sandbox:
        score = partial(score_group, sandbox)
        made = conduct(PLAN, locate("starter"), [0], tmp_path, score, 1, told.append)
        said = len(told)
        again = conduct(PLAN, locate("starter"), [0], tmp_path, score, 1, told.append)
    assert [one.allocation for one in made] == ["equal", "unequal"]
    assert all(set(one.solved) == set(WAYS) and 0.0 <= one.routed <= 1.0 for one in made)
    assert again == made and len(told) == said
    assert table(made).count("\n") == 4
