"""A bucket gives what its rate allows, and no clock empties it for good."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.common.rate import Bucket


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
    bucket.refill(0.0, now=1.0)
    assert round(bucket.left(now=1.0), 6) == round(bucket.left(now=1000.0), 6) == 5.0
    bucket.refill(120.0, now=1000.0)
    assert round(bucket.left(now=1001.0), 6) == 7.0
    bucket.empty(now=1001.0)
    assert bucket.left(now=1001.0) == 0.0 and bucket.wait_s(99, now=1001.0) == 5.0
