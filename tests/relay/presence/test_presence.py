from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.relay.presence import RELAY_GONE_S, OtherRelays, Presence, encode_summary
from tests.relay.clock import Clock


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.sampled_from([b"a", b"b", b"c"])), max_size=80))
def test_keys_are_counted_once_and_connections_each(events: list[tuple[bool, int, bytes]]) -> None:
    presence, sessions = Presence(Clock()), dict[int, bytes]()
    for comes, session, key in events:
        if not comes:
            sessions.pop(session, None)
            presence.leave(session)
        elif session in sessions:
            with pytest.raises(ValueError):
                presence.arrive(session, key)
        else:
            sessions[session] = key
            presence.arrive(session, key)
        assert (len(presence), presence.sessions) == (len({*sessions.values()}), len(sessions))
        assert presence.connections(key) == list(sessions.values()).count(key)


def test_who_came_first_is_listed_first() -> None:
    clock = Clock()
    presence = Presence(clock)
    for session, key in enumerate([b"b", b"a", b"b", b"c"]):
        clock.now += 10
        presence.arrive(session, key)
    assert presence.oldest(2) == [(b"b", 30.0), (b"a", 20.0)]


def test_relays_come_and_go() -> None:
    clock = Clock()
    others = OtherRelays(clock)
    assert (others.relays, others.peers(10)) == (0, 10)
    others.record_summary("two", encode_summary(15))
    others.record_summary("three", encode_summary(1))
    assert (others.relays, others.peers(10)) == (2, 26)
    clock.now += RELAY_GONE_S - 1
    others.record_summary("two", encode_summary(16))
    clock.now += 2
    assert (others.relays, others.peers(10)) == (1, 26)
    clock.now += RELAY_GONE_S
    assert (others.relays, others.peers(10)) == (0, 10)


WRONG = (-1, 2**33, "1", {"unnamed": 1})


@pytest.mark.parametrize("summary", [b"", b"\xff", *map(msgspec.msgpack.encode, WRONG)])
def test_what_is_no_summary_is_passed_over(summary: bytes) -> None:
    others = OtherRelays(Clock())
    others.record_summary("bad", summary)
    assert others.relays == 0
