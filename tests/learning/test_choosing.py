from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.learning import choosing
from app.learning.choosing import MAX_HUMAN_GROUPS, PeerRecords
from app.sapo.groups import GroupRecord, is_single_right_answer
from app.sapo.questions import Coordinates
from app.sapo.recipes import RECIPES, Recipe

FAITHFUL, DEFAULT = RECIPES["faithful"], RECIPES["default"]
GOOD, BAD, ALL = (1, 0, 0, 0), (0, 0, 0, 0), (1, 1, 1, 1)


def offer(key: str, rewards_G: tuple[int, ...] = GOOD) -> GroupRecord:
    where = Coordinates(family="gcd", level=0, seed=2**41, index=0)
    texts_G = ("#1",) * len(rewards_G)
    return GroupRecord(
        coordinates=where, completions_G=texts_G, finished_G=(), model="m", key=key, rewards_G=rewards_G
    )


def choose(recipe: Recipe, pool_P: Sequence[GroupRecord], j: int, rng: Random, **trust: float) -> list[int]:
    """Among groups of this round."""
    return choosing.choose(recipe, pool_P, [0] * len(pool_P), j, rng, lambda key: trust.get(key, 1.0))


POOL = [offer(peer, (1, 0)) for peer in ("good", "doubted") for _ in range(3)]


def drawn(records: PeerRecords, by_record: bool) -> Counter[str]:
    recipe = msgspec.structs.replace(DEFAULT, by_record=by_record)
    return Counter(
        POOL[records.choose(recipe, POOL, [0] * len(POOL), 1, Random(n))[0]].key for n in range(1000)
    )


def test_a_peer_whose_answers_were_kept_out_is_asked_less_where_the_recipe_goes_by_records() -> None:
    records = PeerRecords()
    for _ in range(8):
        records.record_use("good", 1, 0)
        records.record_use("doubted", 0, 1)
    assert drawn(records, True)["doubted"] < 150
    assert 420 < drawn(records, False)["doubted"] < 580


def test_whoever_takes_a_new_key_after_every_group_is_doubted_like_one_that_keeps_its_own() -> None:
    records = PeerRecords()
    for _ in range(8):
        records.record_use("good", 1, 0)
    records.record_use("key", 0, 4)
    assert drawn(records, True)["doubted"] > 200, "one bad one does not make all new ones suspect"
    for key in range(30):
        records.record_use(f"key {key}", 0, 4)
    assert drawn(records, True)["doubted"] < 50, "`doubted` is a key that was never met"
    for key in range(30):
        records.record_use(f"honest {key}", 4, 0)
    assert drawn(records, True)["doubted"] > 250, "honest newcomers make up for it"


def test_the_oldest_records_are_forgotten_first() -> None:
    records = PeerRecords()
    for _ in range(20):
        records.record_use("doubted", 0, 1)
    for stranger in range(600):
        records.record_use(str(stranger), 1, 0)
    assert 420 < drawn(records, True)["doubted"] < 580, "as if it had never been met"


def pool(*peers: tuple[str, int]) -> list[GroupRecord]:
    return [offer(peer) for peer, count in peers for _ in range(count)]


def test_only_informative_groups_are_chosen_and_fewer_when_there_are_fewer() -> None:
    offers = [offer(str(n), rewards_G) for n, rewards_G in enumerate([BAD, GOOD, ALL, GOOD])]
    for recipe in (FAITHFUL, DEFAULT):
        assert sorted(choose(recipe, offers, 4, Random(0))) == [1, 3]
        assert choose(recipe, offers, 0, Random(0)) == []
        assert choose(recipe, [], 4, Random(0)) == []


def test_faithful_is_uniform_over_groups_and_default_over_peers() -> None:
    offers = pool(("busy", 9), ("quiet", 1))
    chosen = {
        recipe.name: Counter(offers[choose(recipe, offers, 1, Random(n))[0]].key for n in range(2000))
        for recipe in (FAITHFUL, DEFAULT)
    }
    assert 0.07 < chosen["faithful"]["quiet"] / 2000 < 0.13  # one group in ten
    assert 0.45 < chosen["default"]["quiet"] / 2000 < 0.55  # one peer in two


def test_a_quarter_of_j_from_any_peer_once_more_than_four_are_there() -> None:
    crowd = pool(*[(name, 20) for name in "abcde"])
    taken = Counter(crowd[i].key for i in choose(DEFAULT, crowd, 8, Random(3)))
    assert sum(taken.values()) == 8 and max(taken.values()) <= 2
    assert len(choose(DEFAULT, crowd, 6, Random(3))) == 5  # one from each: 6 // 4 = 1
    four = pool(*[(name, 20) for name in "abcd"])
    assert len(choose(DEFAULT, four, 8, Random(3))) == 8
    assert len(choose(FAITHFUL, crowd, 40, Random(3))) == 40


def test_a_peer_is_chosen_in_proportion_to_its_trust() -> None:
    offers = pool(("good", 1), ("other", 5), ("doubtful", 5))
    drawn = Counter(
        offers[choose(DEFAULT, offers, 1, Random(n), good=0.9, doubtful=0.4)[0]].key for n in range(4000)
    )
    assert 0.36 < drawn["good"] / 4000 < 0.42 and 0.40 < drawn["other"] / 4000 < 0.47
    assert 0.14 < drawn["doubtful"] / 4000 < 0.21


def test_a_doubted_peer_fills_nothing_up_and_gets_another_chance_now_and_then() -> None:
    offers = pool(("good", 2), ("doubted", 5))
    taken = [len(choose(DEFAULT, offers, 4, Random(n), doubted=0.1)) for n in range(4000)]
    assert set(taken) == {2, 4} and 0.015 < taken.count(4) / 4000 < 0.035


def test_a_peer_without_informative_groups_makes_no_crowd() -> None:
    offers = [*pool(*[(name, 5) for name in "abcd"]), offer("e", BAD)]
    assert len(choose(DEFAULT, offers, 8, Random(0))) == 8


def test_default_takes_nothing_older_than_four_rounds() -> None:
    offers, ages = pool(("a", 2), ("b", 2)), [4, 4, 5, 5]
    assert sorted(choosing.choose(DEFAULT, offers, ages, 4, Random(0))) == [0, 1]
    assert len(choosing.choose(FAITHFUL, offers, ages, 4, Random(0))) == 4


offers_lists = st.lists(
    st.tuples(
        st.builds(
            offer, st.sampled_from("abcdefg"), st.lists(st.integers(0, 1), min_size=1, max_size=4).map(tuple)
        ),
        st.integers(0, 6),
    ),
    max_size=40,
)


@given(offers_lists, st.integers(0, 12), st.integers(0, 2**32), st.sampled_from([FAITHFUL, DEFAULT]))
def test_choices_are_distinct_informative_capped_and_repeatable(offers, j, seed, recipe) -> None:  # type: ignore[no-untyped-def]
    aged, offers, ages = offers, [one for one, _ in offers], [age for _, age in offers]
    chosen = choosing.choose(recipe, offers, ages, j, Random(seed))
    assert chosen == choosing.choose(recipe, offers, ages, j, Random(seed))
    people = [i for i in chosen if is_single_right_answer(offers[i].rewards_G)]  # on top, by the default recipe
    chosen = [i for i in chosen if i not in people]
    assert len(set(chosen)) == len(chosen) <= j and len(people) <= (
        MAX_HUMAN_GROUPS if recipe is DEFAULT and j else 0
    )
    assert all(offers[i].informative for i in chosen)
    if recipe is FAITHFUL:
        assert len(chosen) == min(j, sum(one.informative for one in offers))
    else:
        usable = [one for one, age in aged if one.informative and age <= 4]
        taken = Counter(offers[i].key for i in chosen)
        if len({one.key for one in usable}) > 4:
            assert max(taken.values(), default=0) <= max(1, j // 4)
        else:
            assert len(chosen) == min(j, len(usable))
