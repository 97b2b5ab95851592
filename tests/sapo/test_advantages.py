from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.sapo.advantages import group_normalised, mean_centred, shifted

rewards = st.lists(st.integers(0, 1), min_size=2, max_size=16)


def test_one_right_of_eight_by_hand() -> None:
    rewards_G = [0, 0, 1, 0, 0, 0, 0, 0]
    # mean 1/8; squared deviations 49/64 + 7/64 = 56/64; sample variance 56/64/7 = 1/8
    assert mean_centred(rewards_G)[2] == pytest.approx(7 / 8)
    assert group_normalised(rewards_G)[2] == pytest.approx((7 / 8) / sqrt(1 / 8))
    assert group_normalised(rewards_G)[0] == pytest.approx((-1 / 8) / sqrt(1 / 8))
    assert shifted(rewards_G, 0.1)[2] == pytest.approx(0.975)
    assert shifted(rewards_G, 0.1)[0] == pytest.approx(-0.025)


def test_the_deviation_is_the_sample_one() -> None:
    # two right of four: variance 4 * 0.25 / 3 = 1/3 with G - 1, 1/4 with G
    assert group_normalised([1, 1, 0, 0])[0] == pytest.approx(0.5 * sqrt(3))


def test_a_failure_is_never_encouraged_even_in_large_groups() -> None:
    advantages_G = shifted([1] + [0] * 15, delta=0.1)  # mean 1/16 is below delta
    assert advantages_G[0] == pytest.approx(1 - 1 / 16 + 0.1)
    assert set(advantages_G[1:]) == {0.0}


@pytest.mark.parametrize("function", [mean_centred, group_normalised, lambda r: shifted(r, 0.1)])
def test_empty_and_single_groups_do_not_raise(function) -> None:  # type: ignore[no-untyped-def]
    assert function([]) == []
    assert len(function([1])) == 1


@given(rewards)
def test_both_own_advantages_sum_to_zero_and_vanish_when_all_are_equal(rewards_G: list[int]) -> None:
    for function in (mean_centred, group_normalised):
        advantages_G = function(rewards_G)
        assert sum(advantages_G) == pytest.approx(0, abs=1e-9)
        assert any(advantages_G) == (len(set(rewards_G)) > 1)


@given(rewards, st.randoms())
def test_advantages_follow_the_completions_when_these_are_reordered(rewards_G: list[int], random) -> None:  # type: ignore[no-untyped-def]
    order = list(range(len(rewards_G)))
    random.shuffle(order)
    for function in (mean_centred, group_normalised):
        moved = function([rewards_G[i] for i in order])
        assert moved == pytest.approx([function(rewards_G)[i] for i in order])


@given(rewards)
def test_normalised_rewards_have_unit_sample_deviation(rewards_G: list[int]) -> None:
    if len(set(rewards_G)) > 1:
        advantages_G = group_normalised(rewards_G)
        assert sum(a * a for a in advantages_G) / (len(rewards_G) - 1) == pytest.approx(1, rel=1e-6)
