from __future__ import annotations

import asyncio
from collections import Counter
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.common.rate import Buckets, Rate
from app.relay.limits import NEW_CONNECTIONS_PER_ADDRESS, PER_ADDRESS, PER_KEY, ConnectionLimit, QuotaBuckets
from app.relay.origin import Origins
from tests.relay.clock import Clock


def test_a_burst_then_the_rate_and_how_long_to_wait() -> None:
    clock = Clock()
    quotas = QuotaBuckets(clock, {"publish": Rate(30, 3)}, {})
    assert [quotas.take("publish", b"a", "x") for _ in range(4)] == pytest.approx([0, 0, 0, 2])
    clock.now += 1.5
    assert quotas.take("publish", b"a", "x") == pytest.approx(0.5)
    clock.now += 0.51
    assert quotas.take("publish", b"a", "x") == 0
    assert quotas.take("publish", b"b", "x") == 0
    clock.now += 1000
    assert quotas.left("publish", b"a", "x") == 3  # saved up, not beyond the burst
    assert quotas.take("publish", b"a", "x", 3.5) == inf and quotas.left("publish", b"a", "x") == 3


def test_an_address_bounds_all_its_keys_and_a_refusal_costs_nothing() -> None:
    clock = Clock()
    quotas = QuotaBuckets(clock, {"sample": Rate(60, 2)}, {"sample": Rate(60, 3), "connect": Rate(60, 1)})
    assert [quotas.take("sample", key, "net") for key in (b"a", b"a", b"b")] == [0, 0, 0]
    assert quotas.take("sample", b"c", "net") == pytest.approx(1)
    assert quotas.left("sample", b"c", "elsewhere") == 2  # the refused key kept its own tokens
    assert quotas.take("sample", b"a", "elsewhere") == pytest.approx(1)
    assert quotas.left("sample", None, "elsewhere") == 3
    assert quotas.take("connect", None, "net") == 0 and quotas.take("connect", b"z", "net") == pytest.approx(1)
    assert quotas.take("sample", None, "other") == 0


def test_mistakes_are_errors() -> None:
    quotas = QuotaBuckets(Clock())
    with pytest.raises(KeyError):
        quotas.take("unheard of", b"a", "x")
    with pytest.raises(ValueError):
        quotas.take("publish", b"a", "x", -1)
    for per_min, burst in ((0, 1), (1, 0), (-1, 1), (1, inf), (float("nan"), 1)):
        with pytest.raises(ValueError):
            Rate(per_min, burst)
    assert {"publish", "sample", "bytes"} <= PER_KEY.keys() <= PER_ADDRESS.keys()


def test_memory_is_bounded_and_full_buckets_are_forgotten() -> None:
    buckets = Buckets(Rate(60, 10), sources=100)
    for n in range(1000):
        buckets.take(str(n), 10, now=n / 1000)
        assert len(buckets) <= 100
    assert buckets.left("999", 0.999) == 0 and buckets.left("1", 0.999) == 10
    buckets.take("late", 1, now=50.0)
    assert len(buckets) == 1


STEPS = st.lists(
    st.tuples(
        st.sampled_from([b"a", b"b", b"c"]),
        st.sampled_from("xy"),
        st.floats(0, 12),  # amount
        st.sampled_from([0.0, 0.0, 0.1, 1.0, 30.0]) | st.floats(0, 100),  # seconds before it
    ),
    max_size=60,
)


@settings(deadline=None)
@given(STEPS)
def test_never_below_empty_never_more_than_burst_and_rate_allow(
    steps: list[tuple[bytes, str, float, float]],
) -> None:
    clock = Clock()
    key_rate, address_rate = Rate(60, 8), Rate(90, 10)
    quotas = QuotaBuckets(clock, {"bytes": key_rate}, {"bytes": address_rate})
    begin, taken = clock.now, {}  # type: ignore[var-annotated]
    for key, address, amount, pause in steps:
        clock.now += pause
        before = quotas.left("bytes", key, address)
        wait = quotas.take("bytes", key, address, amount)
        after = quotas.left("bytes", key, address)
        assert 0 <= after <= before <= 8
        if wait == 0:
            assert amount <= before + 1e-6 and after == pytest.approx(before - amount, abs=1e-6)
            for source in (key, address):
                taken[source] = taken.get(source, 0.0) + amount
        else:
            assert after == before and amount > before - 1e-6
        for source, total in taken.items():
            rate = key_rate if isinstance(source, bytes) else address_rate
            assert total <= rate.burst + rate.per_s * (clock.now - begin) + 1e-6
        if 0 < wait < inf:  # who waits as told is served
            later = Clock()
            later.now = clock.now + wait + 1e-6
            clock.now = later.now
            assert quotas.left("bytes", key, address) >= amount - 1e-6


class Caller(asyncio.Transport):
    """A connection that came from `address`."""

    def __init__(self, address: str) -> None:
        super().__init__({"peername": (address, 1)})


def test_one_address_takes_nothing_of_what_all_strangers_share() -> None:
    """250 connections a second of one address kept all newcomers out."""
    clock = Clock()
    limit = ConnectionLimit(Origins(), clock, most=1000)
    eve, ann = Caller("192.0.2.9"), Caller("203.0.113.5")
    met: Counter[str | None] = Counter()
    for second in range(20):
        for attempt in range(250):
            handler: Any = (second, attempt)
            met[limit._enter(handler, eve)] += 1
            limit._leave(handler)
        newcomer: Any = second
        assert limit._enter(newcomer, ann) is None
        limit._leave(newcomer)
        clock.now += 1
    most = NEW_CONNECTIONS_PER_ADDRESS.burst + 20 * NEW_CONNECTIONS_PER_ADDRESS.per_s
    assert set(met) == {None, "address"} and 0 < met[None] <= most
