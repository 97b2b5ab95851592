from __future__ import annotations

import msgspec
import pytest

from app.relay.presence import (
    MAX_LISTED_KEYS,
    RELAY_GONE_S,
    OtherRelays,
    PresenceSummary,
    count_keys,
    encode_summary,
)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def keys(first: int, last: int) -> list[bytes]:
    return [n.to_bytes(32, "big") for n in range(first, last)]


def test_a_union_is_exact_for_few_and_a_sum_for_many() -> None:
    few = [PresenceSummary.of(keys(0, 1_500)), PresenceSummary.of(keys(1_000, 2_500))]
    assert count_keys(few) == 2_500
    many = PresenceSummary.of(keys(2_000, 22_000))
    assert not many.prints and count_keys([*few, many]) == 22_500


def test_relays_come_and_go() -> None:
    clock = Clock()
    others = OtherRelays(clock)
    own = keys(0, 10)
    assert (others.relays, others.peers(own)) == (0, 10)
    others.record_summary("two", encode_summary(keys(5, 20)))
    others.record_summary("three", encode_summary(keys(100, 101)))
    assert (others.relays, others.peers(own)) == (2, 21)
    clock.now = RELAY_GONE_S - 1
    others.record_summary("two", encode_summary(keys(5, 21)))
    assert others.peers(own) == 22
    clock.now = RELAY_GONE_S + 1
    assert (others.relays, others.peers(own)) == (1, 21)
    clock.now = 3 * RELAY_GONE_S
    assert (others.relays, others.peers(own)) == (0, 10)


@pytest.mark.parametrize(
    "summary",
    [
        b"",
        b"\xff",
        msgspec.msgpack.encode({"unnamed": -1}),
        msgspec.msgpack.encode({"prints": b"1234567"}),
        msgspec.msgpack.encode({"unnamed": 1, "more": 2}),
        msgspec.msgpack.encode({"prints": b"12345678" * (MAX_LISTED_KEYS + 1)}),
    ],
)
def test_what_is_no_summary_is_passed_over(summary: bytes) -> None:
    others = OtherRelays(Clock())
    others.record_summary("bad", summary)
    assert others.relays == 0
