"""kill -9 of a relay, and of NATS and a relay on it, while nodes publish: whatever was acknowledged is stored,
once. How long nobody got an answer is printed with `pytest -s`."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import aiohttp
import msgspec
import nats
import pytest

from app.relay.store.backing import CheckedGroup
from app.swarm.client.client import Client
from app.swarm.client.outbox import Outbox
from app.swarm.identity.identity import Identity
from app.swarm.wire.frames import decode_relay_frame, to_frame
from app.swarm.wire.limits import RELAY_FILE
from app.swarm.wire.protocol import OPENING, SUBPROTOCOL, AskStats, Hello, Stats
from tests.relay.natsserver import Server, free_ports
from tests.swarm.relays import Relay, group

if sys.platform == "win32":
    pytest.skip("kills by signal", allow_module_level=True)

PATIENCE = 240.0
PAUSE_S = 0.4
"""Between two groups of one node."""
Strike = Callable[[], Awaitable[None]]
Note = Callable[[str, object], None]


class Crew:
    """Nodes that publish, each with its own key and outbox. `stall_s` is the longest time in which groups
    waited and none was acknowledged."""

    def __init__(self, folder: Path, urls: list[str], nodes: int) -> None:
        self.stall_s = 0.0
        self.outboxes: list[Outbox] = []
        self.clients: list[Client] = []
        for n in range(nodes):
            home = folder / f"node{n}"
            home.mkdir()
            outbox = Outbox(home / "outbox")
            self.outboxes.append(outbox)
            identity = Identity(bytes([n + 1] * 32))
            self.clients.append(Client(urls, identity, outbox, memory=home / "relays.json"))

    @property
    def acknowledged(self) -> int:
        return sum(client.status.acknowledged for client in self.clients)

    async def work(self, each: int, strike: Strike, pause_s: float = PAUSE_S) -> None:
        """Publish, with `strike` from the fourth group on, until everything is acknowledged."""
        running = [asyncio.create_task(client.run()) for client in self.clients]
        watching = asyncio.create_task(self._watch())
        try:
            async with asyncio.timeout(PATIENCE):
                striking = None
                for round_ in range(each):
                    if round_ == 3:
                        striking = asyncio.create_task(strike())
                    for n, client in enumerate(self.clients):
                        assert client.publish(group(n * each + round_), (1, 0))
                    await asyncio.sleep(pause_s)
                assert striking is not None
                await striking
                while self.acknowledged < each * len(self.clients):
                    await asyncio.sleep(0.1)
        finally:
            for task in (*running, watching):
                task.cancel()
            await asyncio.gather(*running, watching, return_exceptions=True)

    async def _watch(self) -> None:
        before, since = 0, time.monotonic()
        while True:
            now, done = time.monotonic(), self.acknowledged
            if done != before or all(client.status.waiting == 0 for client in self.clients):
                before, since = done, now
            self.stall_s = max(self.stall_s, now - since)
            await asyncio.sleep(0.02)

    def check(self, each: int) -> None:
        """All that was created was acknowledged as stored."""
        for outbox in self.outboxes:
            counts = outbox.counts()
            assert counts.created == counts.accepted + counts.duplicate == each, counts
            outbox.close()


async def stats(url: str) -> Stats:
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(url, protocols=(SUBPROTOCOL,), headers={OPENING: "00" * 32}) as ws,
    ):
        assert isinstance(decode_relay_frame((await ws.receive_str()).encode()), Hello)
        await ws.send_str(to_frame(AskStats()).decode())
        answer = decode_relay_frame((await ws.receive_str()).encode())
        assert isinstance(answer, Stats)
        return answer


async def windows_hold(relays: list[Relay], expected: int) -> None:
    """Each relay's window has so many groups; as it knows each id once, none is missing and none double."""
    async with asyncio.timeout(60):
        for relay in relays:
            while (await stats(relay.url)).window < expected:
                await asyncio.sleep(0.2)
    for relay in relays:
        found = await stats(relay.url)
        assert (found.window, found.stored) == (expected, expected), relay.url


def numbers(envelopes: list[bytes]) -> list[int]:
    """Which groups these are, by the number in their text."""
    texts = [json.loads(json.loads(raw)["body"])["completions"][0] for raw in map(_plain, envelopes)]
    return sorted(int(found[1]) for text in texts if (found := re.match(r"so it is (\d+)", text)))


def _plain(raw: bytes) -> bytes:
    import base64
    import zlib

    envelope = json.loads(raw)
    if envelope["enc"] == "zlib":
        envelope["body"] = zlib.decompress(base64.b64decode(envelope["body"])).decode()
    return json.dumps(envelope).encode()


def in_file(state: Path) -> list[bytes]:
    db = sqlite3.connect(state / RELAY_FILE)
    try:
        return [raw for (raw,) in db.execute("SELECT raw FROM groups")]
    finally:
        db.close()


async def in_stream(url: str, expected: int) -> list[bytes]:
    nc = await nats.connect(url.removeprefix("nats://").split(","))
    try:
        js = nc.jetstream()
        info = await js.stream_info("SHOAL_shoal")
        assert info.state.messages == expected
        found = []
        for seq in range(info.state.first_seq, info.state.last_seq + 1):
            data = (await js.get_msg("SHOAL_shoal", seq)).data
            assert data is not None
            found.append(msgspec.msgpack.decode(data, type=CheckedGroup).raw)
        return found
    finally:
        await nc.close()


@pytest.fixture
def relays() -> Iterator[list[Relay]]:
    started: list[Relay] = []
    yield started
    for relay in started:
        if relay.process.returncode is None:
            relay.kill()


def test_a_relay_with_a_file_is_killed(tmp_path: Path, relays: list[Relay], record_property: Note) -> None:
    nodes, each = 5, 12
    relay = Relay("--state", str(tmp_path / "state"))
    relays.append(relay)
    relay.start()

    async def strike() -> None:
        relay.kill()
        await asyncio.sleep(0.5)
        await asyncio.to_thread(relay.start)

    async def story() -> None:
        crew = Crew(tmp_path, [relay.url for relay in relays], nodes)
        await crew.work(each, strike)
        await windows_hold(relays, nodes * each)
        crew.check(each)
        told(record_property, "relay with a file", crew, nodes * each)

    asyncio.run(story())
    relay.kill()
    assert numbers(in_file(tmp_path / "state")) == list(range(nodes * each))


@pytest.mark.long
def test_nats_and_a_relay_on_it_are_killed(tmp_path: Path, relays: list[Relay], record_property: Note) -> None:
    nodes, each = 20, 30
    server = Server(tmp_path / "nats", *free_ports(1))
    server.start()
    try:
        for _ in range(2):
            relays.append(Relay("--backplane", server.url))
            relays[-1].start()

        async def strike() -> None:
            server.kill()
            await asyncio.sleep(1.0)
            await asyncio.to_thread(server.start)
            await asyncio.sleep(1.0)
            relays[0].kill()
            await asyncio.sleep(0.5)
            await asyncio.to_thread(relays[0].start)

        async def story() -> None:
            crew = Crew(tmp_path, [relay.url for relay in relays], nodes)
            await crew.work(each, strike)
            await windows_hold(relays, nodes * each)
            crew.check(each)
            assert numbers(await in_stream(server.url, nodes * each)) == list(range(nodes * each))
            told(record_property, "nats-server, then one relay of two", crew, nodes * each)

        asyncio.run(story())
    finally:
        server.kill()


def told(note: Note, what: str, crew: Crew, groups: int) -> None:
    note("longest_stall_s", round(crew.stall_s, 2))
    print(f"\n{what}: {len(crew.clients)} nodes, {groups} groups, longest stall {crew.stall_s:.1f} s")
