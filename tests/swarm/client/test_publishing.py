"""The parts of a client that need no relay: clock, allowance, memory of relays, the pace of publishing."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.swarm.client.client import SAMPLE_S
from app.swarm.client.clock import RelayClock
from app.swarm.client.outbox import Outbox
from app.swarm.client.places import MAX_RELAYS, KnownRelays
from app.swarm.client.underway import MAX_HELD, Publisher, SampleLimiter
from app.swarm.wire.frames import from_client
from app.swarm.wire.limits import RATE_SHARE, Code, Quotas, RelayLimits, allowance
from app.swarm.wire.protocol import Ok, Pub, SampleReply
from app.swarm.wire.signin import relay_id
from tests.swarm.relays import ANN, group


def publisher(folder: Path, swarm: str | None = "shoal") -> Publisher:
    outbox = Outbox(folder / "outbox.db")
    one = Publisher(outbox, ANN, RelayClock(), Random(1), now=0.0)
    if swarm is not None:
        one.set_swarm(swarm)
    return one


def answer(frame: bytes, code: Code, retry_after_ms: int | None = None) -> Ok:
    pub = from_client(frame)
    assert isinstance(pub, Pub)
    return Ok(id=pub.id, code=code, retry_after_ms=retry_after_ms, time_ms=1)


def test_stamps_follow_the_relays_clock_and_one_odd_word_changes_nothing() -> None:
    clock = RelayClock(wall_ms=lambda: 1_000_000, steady_ms=lambda: 77)
    assert clock.offset_ms == 0 and clock.now_ms() == 1_000_000
    for told in (87_400_000, 87_400_050, 1, 87_400_020):
        clock.record_time(told)
    assert clock.now_ms() == 87_400_000
    for _ in range(8):
        clock.record_time(1_000_500)
    assert clock.offset_ms == 500
    clock.forget()
    clock.record_time(0)
    assert clock.now_ms() == 0


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(0, 9)), max_size=60))
def test_an_allowance_never_gives_more_than_the_relay(steps: list[tuple[float, int]]) -> None:
    bucket, now, taken = allowance(30, 60), 0.0, 0.0
    for passed, wanted in steps:
        now += passed
        amount = min(wanted, int(bucket.left(now)))
        bucket.take(amount, now)
        taken += amount
        assert 0 <= bucket.left(now) <= 60
        assert taken <= 60 + now * 0.5 * RATE_SHARE + 1e-6
    assert bucket.left(now + bucket.wait_s(5, now)) >= 5 - 1e-6


def test_relays_met_before_are_remembered_and_a_damaged_file_is_none(tmp_path: Path) -> None:
    path = tmp_path / "home" / "relays.json"
    known = KnownRelays(path)
    assert known.last() is None
    for number in range(MAX_RELAYS + 6):
        known.remember(f"ws://10.0.0.{number}:1/v1/ws", relay_id(bytes([number])), "shoal")
    known.remember("ws://10.0.0.40:1/v1/ws", relay_id(b"new"), "shoal")
    again = KnownRelays(path)
    last = again.last()
    assert last is not None and last[1].relay == relay_id(b"new")
    assert again.get("ws://10.0.0.5:1/v1/ws") is None and again.get("ws://10.0.0.6:1/v1/ws") is not None
    for damage in (
        b"",
        b"{",
        b"[]",
        b'{"v":2,"relays":{}}',
        b'{"v":1,"relays":{"u":{"relay":"\x00","swarm":"S"}}}',
    ):
        path.write_bytes(damage)
        assert KnownRelays(path).last() is None
    path.unlink()
    path.mkdir()
    KnownRelays(path).remember("ws://x:1/v1/ws", "r", "shoal")


def test_what_is_held_for_an_unknown_swarm_is_bounded_and_sealed_later(tmp_path: Path) -> None:
    one = publisher(tmp_path, None)
    for number in range(MAX_HELD + 3):
        assert one.add(group(number), (1, 0), now=0.0)
    assert one.held == MAX_HELD and one.counts.created == 0
    one.set_swarm("shoal")
    assert one.held == 0 and one.counts.created == MAX_HELD


def test_what_a_full_disk_refuses_is_held_and_goes_into_the_outbox_later(tmp_path: Path) -> None:
    one = publisher(tmp_path)
    assert one.add(group(0), (1, 0), now=0.0)
    (pages,) = one._outbox._db.execute("PRAGMA page_count").fetchone()
    one._outbox._db.execute(f"PRAGMA max_page_count={pages}")
    number = 0
    while not one.held:  # until the pages that are there are full
        number += 1
        with contextlib.suppress(sqlite3.OperationalError):
            one.add(group(number), (1, 0), now=0.0)
    stored = one.counts.created
    with pytest.raises(sqlite3.OperationalError):
        one.add(group(number + 1), (1, 0), now=0.0)
    assert one.held == 2 and one.counts.created == stored == number
    one._outbox._db.execute("PRAGMA max_page_count=100000")
    assert one.add(group(number + 2), (1, 0), now=0.0)
    assert one.held == 0 and one.counts.created == number + 3


def test_sixteen_refused_at_once_are_one_failure(tmp_path: Path) -> None:
    one = publisher(tmp_path)
    for number in range(20):
        one.add(group(number), (1, 0), now=0.0)
    frames = list(one.due(0.0))
    assert len(frames) == 16 and list(one.due(0.0)) == []
    for frame in frames:
        one.settle(answer(frame, Code.ERROR), 0.0)
    assert list(one.due(0.1)) == [] and len(list(one.due(1.1))) == 16, "a second later, not a minute"
    assert not one.overdue(2.0) and one.overdue(90.0)
    one.on_disconnect()
    assert not one.overdue(90.0) and list(one.due(90.0)) == frames, "the same bytes, oldest first"


def test_a_relay_without_compression_gets_plain_text(tmp_path: Path) -> None:
    one = publisher(tmp_path)
    one.add(group(0, "x" * 2000), (1, 0), now=0.0)
    (plain,) = one.due(0.0)
    one.on_disconnect()
    one.on_connect(Quotas(), 16, True, 0.0)
    (packed,) = one.due(0.0)
    assert from_client(plain).enc == "plain" and from_client(packed).enc == "zlib"  # type: ignore[union-attr]
    assert answer(plain, Code.ACCEPTED).id == answer(packed, Code.ACCEPTED).id and len(packed) < len(plain) / 3


def test_who_publishes_what_there_is_room_for_empties_the_outbox(tmp_path: Path) -> None:
    """Rounds of five seconds, a relay that is away for ten minutes and then takes what its quota allows."""
    one, relay, rng = publisher(tmp_path), allowance(30, 60), Random(1)
    now, made, most = 0.0, 0, 0
    while now < 1800:
        now += 5.0
        for _ in range(min(12, one.groups_to_publish(now))):
            assert one.add(group(made % 50), (1, 0), now)
            made += 1
        most = max(most, one.counts.waiting)
        for frame in one.due(now) if now > 600 else ():
            taken = relay.left(now) >= 1 and rng.random() < 0.95
            relay.take(1 if taken else 0, now)
            one.settle(answer(frame, Code.ACCEPTED if taken else Code.RATE_LIMITED, 2000), now)
    assert most > 80 and one.counts.waiting <= 40
    assert one.counts.accepted + one.counts.waiting == made > 300


@pytest.mark.parametrize(("bytes_per_s", "size"), [(6_000, 32_768), (25_000, 131_072), (10**6, 320_000)])
def test_a_batch_is_as_large_as_its_line_carries(bytes_per_s: int, size: int) -> None:
    """Below 25 kB/s batches of 320 kB were cut or came too late, again and again. A request that a timeout or a
    lost connection ends asks for half as much next time."""

    async def story() -> None:
        samples = SampleLimiter(0.0)
        samples.on_connect(Quotas(), RelayLimits(), 0.0)
        now, asked = 0.0, 0
        for _ in range(12):
            ask = samples.ask(64, None, None, now)
            assert ask is not None
            asked, took = ask[0].max_bytes, ask[0].max_bytes / bytes_per_s
            if took > SAMPLE_S:
                samples.give_up(ask[0].rid)
            else:
                items = (msgspec.Raw(bytes(asked)),)
                batch = SampleReply(
                    rid=ask[0].rid, items=items, window=1, eligible=1, sources=1, age_p50_s=None
                )
                samples.settle(batch, now + took)
            now += max(6.0, took)
        assert asked == size
        for _ in range(2):
            lost = samples.ask(64, None, None, now)
            assert lost is not None
            samples.on_disconnect()
            samples.on_connect(Quotas(), RelayLimits(), now)
        again = samples.ask(64, None, None, now + 6)
        assert again is not None and 16_384 <= again[0].max_bytes < asked

    asyncio.run(story())
