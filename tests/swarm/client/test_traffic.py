"""What left and came, against the bytes that a proxy between node and relay counts."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest

from app.swarm.client.status import Ledger
from app.swarm.client.traffic import FILE, HOUR_S, MAX_FILE_BYTES, SLOT_S, TrafficCounter, read_traffic
from tests.swarm.relays import BOB, Relay, Wire, group, running, until


def test_the_hour_slides_over_restarts_and_forgets_what_is_older(tmp_path: Path) -> None:
    now = [7_200_000.0]

    def open_again() -> TrafficCounter:
        return TrafficCounter(tmp_path, lambda: now[0])

    for minute in range(90):
        counter = open_again()
        now[0] = 7_200_000.0 + 60 * minute
        counter.count(sent=10, received=46)
        counter.save()
    assert counter.hour == (600, 2760) and read_traffic(tmp_path).sent == 900
    assert (tmp_path / FILE).stat().st_size < MAX_FILE_BYTES // 10
    now[0] += 30 * 60
    assert open_again().hour == (300, 1380)
    now[0] -= 10 * HOUR_S  # a clock that was wrong
    counter = open_again()
    counter.count(sent=1)
    assert counter.hour[0] == 901, "nothing disappears"
    now[0] += HOUR_S + SLOT_S
    assert counter.hour == (0, 0)
    (tmp_path / FILE).write_bytes(b'{"sent":-3,"slots":[[1,')
    assert open_again().hour == (0, 0) and read_traffic(tmp_path).sent == 0


@pytest.mark.skipif(sys.platform == "win32", reason="kills processes hard")
def test_the_figures_are_those_on_the_wire(tmp_path: Path) -> None:
    """Three reconnections, an end and a kill: the next start goes on where the last save was."""
    relay = Relay()
    relay.start()
    now = [7_200_000.0]
    made = iter(range(1000))

    async def talk(url: str, wire: Wire, breaks: int, ends: bool) -> None:
        counter = TrafficCounter(tmp_path, lambda: now[0])
        async with running(tmp_path, [url], BOB, ledger=Ledger(counter)) as (bob, _):
            for part in range(1 + breaks):
                await until(lambda: bob.status.connected)
                have = bob.status.acknowledged
                for _ in range(6):
                    assert bob.publish(group(next(made), "so it is " * 60), (1, 0))
                await until(lambda have=have: bob.status.acknowledged == have + 6)
                assert await bob.sample(8) is not None
                now[0] += 300
                if part < breaks:
                    met = wire.met
                    wire.break_off()
                    await until(lambda met=met: wire.met > met)
            counter.save(at_once=not ends)  # a kill loses what comes after it
        counter.save(at_once=ends)

    async def story() -> tuple[int, int]:
        wire = Wire(relay.port)
        async with wire.open() as url:
            await talk(url, wire, 2, ends=True)
            await talk(url, wire, 1, ends=False)
            await talk(url, wire, 0, ends=True)
            return wire.sent, wire.received

    try:
        sent, received = asyncio.run(story())
    finally:
        relay.kill()
    counter = TrafficCounter(tmp_path, lambda: now[0])
    assert sent > 5_000 and counter.hour == pytest.approx((sent, received), rel=0.02)
    assert counter.hour == (read_traffic(tmp_path).sent, read_traffic(tmp_path).received)
    print(sent, received, msgspec.to_builtins(read_traffic(tmp_path)))
