"""The pool: each group once, nobody too much of it, nothing too old, never too large."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.sapo.groups import Group, ScoredGroup
from app.sapo.mixing import choose
from app.sapo.questions import Coordinates
from app.sapo.recipes import RECIPES
from app.swarm.intake.pool import Checked, Pool

NOW_MS = 1_800_000_000_000


def checked(number: int, peer: str = "ann", age_s: float = 0.0, text: str = "#1") -> Checked:
    group = Group(
        coordinates=Coordinates(family="gcd", level=0, seed=number, index=0),
        completions_G=(text, "#2"),
        finished_G=(True, True),
        model="starter",
    )
    return Checked(
        id=f"{number:064x}",
        peer=peer,
        name=peer,
        scored=ScoredGroup(group=group, scores_G=(1.0, 0.0), rewards_G=(1, 0)),
        text="?",
        created_ms=NOW_MS - int(age_s * 1000),
    )


def test_each_group_is_used_once_and_gone_then() -> None:
    pool = Pool()
    for number in range(5):
        pool.add(checked(number), NOW_MS)
        pool.add(checked(number), NOW_MS)
    assert len(pool.offers(NOW_MS, 30)) == 5
    assert [one.id for one in pool.take([3, 0, 3])] == [checked(3).id, checked(0).id]
    assert pool.take([3, 0]) == [] and len(pool) == 3, "positions are of the latest offers, whatever came since"
    figures = pool.figures()
    assert (figures.added, figures.taken, figures.groups) == (5, 2, 3)


def test_age_is_in_this_nodes_rounds() -> None:
    pool = Pool()
    for number, age_s in enumerate((1700, 1000, 119, 10, -100)):
        pool.add(checked(number, age_s=age_s), NOW_MS)
    assert [one.age for one in pool.offers(NOW_MS, 500)] == [3, 2, 0, 0, 0], "a slow node finds groups"
    assert [one.age for one in pool.offers(NOW_MS, 2)] == [56, 33, 3, 0, 0], "so does a fast one"
    recipe = RECIPES["default"]
    assert len(choose(recipe, pool.offers(NOW_MS, 500), 8, Random(1))) == 5
    assert len(choose(recipe, pool.offers(NOW_MS, 2), 8, Random(1))) == 3
    assert len(pool.offers(NOW_MS + 200_000, 500)) == 4 and pool.figures().aged == 1, "half an hour is the end"


def test_a_flood_displaces_itself() -> None:
    pool = Pool(most=20, per_peer=8)
    for number in range(4):
        pool.add(checked(number, "bob"), NOW_MS)
    for number in range(100, 200):
        pool.add(checked(number, f"flood{number % 3}"), NOW_MS)
    ids = [one.id for one in pool.take(range(len(pool.offers(NOW_MS, 30))))]
    assert {f"{n:064x}" for n in range(4)} <= set(ids) and len(ids) == 20
    assert f"{199:064x}" in ids and f"{100:064x}" not in ids


def test_bytes_are_bounded_too() -> None:
    pool = Pool(most_bytes=100_000)
    for number in range(50):
        pool.add(checked(number, text="🐟" * 4000), NOW_MS)
    assert 1 <= len(pool) < 10 and pool.figures().bytes <= 100_000


def test_a_round_of_no_length_is_no_error() -> None:
    pool = Pool()
    pool.add(checked(1), NOW_MS)
    assert [one.age for one in pool.offers(NOW_MS, 0.0)] == [0]
    with pytest.raises(IndexError):
        pool.take([7])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from("abc"), st.integers(-100, 3000)), max_size=60))
def test_it_always_adds_up(arrivals: list[tuple[int, str, int]]) -> None:
    pool = Pool(most=12, per_peer=6)
    for number, peer, age_s in arrivals:
        pool.add(checked(number, peer, age_s), NOW_MS)
        offers = pool.offers(NOW_MS, 30)
        assert len(offers) <= 12
        assert all(sum(one.peer == peer for one in offers) <= 6 for peer in "abc")
        if number % 5 == 0 and offers:
            pool.take([0])
        figures = pool.figures()
        assert figures.added == figures.groups + figures.taken + figures.aged + figures.displaced
        assert figures.bytes == sum(one.size for one in pool._groups.values())
        assert figures.peers == len({one.peer for one in pool._groups.values()})
