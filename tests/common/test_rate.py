"""A bucket gives what its rate allows, and no clock empties it for good; waits keep to their bounds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from app.common.rate import LONGEST_S, SHORTEST_S, Backoff, Bucket, delay_s, wait_s


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(0, 9)), max_size=60))
def test_a_bucket_never_gives_more_than_its_rate(steps: list[tuple[float, int]]) -> None:
    bucket, now, taken = Bucket(30, 60), 0.0, 0.0
    for passed, wanted in steps:
        now += passed
        amount = min(wanted, int(bucket.left(now)))
        bucket.take(amount, now)
        taken += amount
        assert 0 <= bucket.left(now) <= 60
        assert taken <= 60 + now * 0.5 + 1e-6
    assert bucket.left(now + bucket.wait_s(5, now)) >= 5 - 1e-6


def test_a_clock_that_is_set_back_costs_nothing_and_gives_nothing() -> None:
    bucket = Bucket(60, 4)
    bucket.take(2, now=1e6)
    assert bucket.left(now=0.0) == 2.0
    bucket.take(1, now=0.0)
    assert bucket.left(now=0.0) == 1.0 and bucket.left(now=9.0) == 4.0


def test_another_rate_keeps_what_is_in_it() -> None:
    bucket = Bucket(60, 10)
    bucket.take(6, now=0.0)
    bucket.set_rate(0.0, now=1.0)
    assert round(bucket.left(now=1.0), 6) == round(bucket.left(now=1000.0), 6) == 5.0
    bucket.set_rate(120.0, now=1000.0)
    assert round(bucket.left(now=1001.0), 6) == 7.0
    bucket.drain(now=1001.0)
    assert bucket.left(now=1001.0) == 0.0 and bucket.wait_s(99, now=1001.0) == 5.0


chances = st.floats(0, 1, exclude_max=True)


def test_waits_double_from_half_a_second_and_stay_under_a_minute() -> None:
    assert [delay_s(n, 0.0) for n in range(1, 10)] == [0.5, 1, 2, 4, 8, 16, 20, 20, 20]
    assert [delay_s(n, 1.0) for n in range(1, 10)] == [1, 2, 4, 8, 16, 32, 40, 40, 40]
    assert delay_s(4, 0.5) == 6.0


def test_a_relay_s_word_is_kept_and_spread() -> None:
    assert delay_s(1, 0.0, 10_000) == 10.0
    assert delay_s(1, 1.0, 10_000) == 11.0
    assert delay_s(1, 0.5, 3_600_000) == 3780.0
    assert delay_s(9, 0.0, 1) == 20.0


@settings(deadline=None)
@given(st.integers(0, 10**9), chances, st.none() | st.integers(0, 86_400_000))
def test_bounds(failures: int, chance: float, told: int | None) -> None:
    wait = delay_s(failures, chance, told)
    assert wait >= max(SHORTEST_S, (told or 0) / 1000)
    assert wait <= max(LONGEST_S, (told or 0) / 1000 * 1.1 + 1e-6)


def test_pace() -> None:
    fresh = Backoff()
    assert fresh.wait_s(now=100.0) == 0.0
    once = fresh.failed(100.0, 0.0)
    twice = once.failed(100.0, 0.0)
    assert (once.wait_s(100.0), twice.wait_s(100.0), twice.wait_s(100.75)) == (0.5, 1.0, 0.25)
    assert twice.wait_s(500.0) == 0.0
    told = fresh.failed(100.0, 0.0, 10_000)
    assert told.failed(101.0, 0.0).wait_s(101.0) == 9.0
    assert told.after_success().wait_s(101.0) == 9.0
    assert told.after_success().failed(200.0, 0.0).wait_s(200.0) == 0.5


@given(st.integers(-3, 10**9), st.floats(0.01, 10), st.floats(10, 600), st.floats(1, 8))
def test_the_curve_never_falls_nor_passes_its_longest(
    n: int, first: float, longest: float, growth: float
) -> None:
    waits = [wait_s(k, first_s=first, longest_s=longest, growth=growth) for k in (n, n + 1)]
    assert first <= waits[0] <= waits[1] <= longest
