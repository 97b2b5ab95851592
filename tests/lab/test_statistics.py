from __future__ import annotations

from random import Random

import pytest

from app.lab.statistics import estimate, mean_height, paired, t_interval


def test_identical_values_have_no_width() -> None:
    same = estimate([[0.25, 0.25], [0.25, 0.25]])
    assert (same.mean, same.low, same.high, same.t_low, same.t_high) == (0.25,) * 5


def test_two_seeds_with_one_node_each_by_hand() -> None:
    # resamples of {0, 1}: means 0 (1/4), 1/2 (1/2), 1 (1/4), so the 2.5 % and 97.5 % points are the ends
    value = estimate([[0.0], [1.0]])
    assert (value.mean, value.low, value.high, value.seeds) == (0.5, 0.0, 1.0, 2)


def test_one_seed_speaks_of_its_nodes_only() -> None:
    value = estimate([[0.1, 0.2, 0.3, 0.4]])
    assert 0.1 <= value.low < value.mean < value.high <= 0.4
    assert value.t_low is None


def test_a_difference_is_paired() -> None:
    # nodes differ widely, but the second arm is always 0.1 above the first
    base = [[0.0, 0.5, 0.9], [0.2, 0.4, 0.6]]
    better = [[value + 0.1 for value in values] for values in base]
    difference = paired(better, base)
    assert difference.low == pytest.approx(0.1) == pytest.approx(difference.high)
    assert difference.t_low == pytest.approx(0.1)


def test_the_bootstrap_covers_the_truth_about_as_often_as_it_says() -> None:
    rng, hits = Random(3), 0
    for _ in range(120):
        values = [
            [rng.gauss(0.0, 1.0) + shared for _ in range(4)]
            for shared in (rng.gauss(0, 0.5) for _ in range(10))
        ]
        value = estimate(values)
        hits += value.low <= 0.0 <= value.high
    assert hits / 120 > 0.85


def test_t_interval_by_hand() -> None:
    low, high = t_interval([0.10, 0.20])  # sd 0.0707, / sqrt 2 = 0.05, t = 12.706
    assert (low, high) == pytest.approx((0.15 - 0.6353, 0.15 + 0.6353))
    assert t_interval([0.3]) == (None, None)
    wide, narrow = t_interval([0.0, 1.0] * 20)
    assert wide is not None and narrow is not None and narrow - wide < 0.4


def test_area_is_the_mean_height() -> None:
    assert mean_height([0, 10], [0.0, 1.0]) == 0.5
    assert mean_height([0, 10, 20], [0.3, 0.3, 0.3]) == pytest.approx(0.3)
    assert mean_height([0], [0.7]) == 0.7


@pytest.mark.parametrize("values", [[], [[]], [[0.1], [0.1, 0.2]]])
def test_nothing_and_ragged_seeds_are_refused(values: list[list[float]]) -> None:
    with pytest.raises(ValueError):
        estimate(values)
