"""Everything that somebody may do to a relay, against a real one: each is refused with its code, and honest
clients beside it notice nothing.

Clients come from addresses of their own by way of X-Forwarded-For, as the relay is told to trust this computer.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import logging
import socket
import struct
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from app.common.rate import Bucket
from app.relay.limits import SOCKETS_PER_ADDRESS
from app.relay.server import serving
from app.relay.server.server import Server
from app.relay.session.session import Session
from app.relay.session.shared import RelayState
from app.swarm.wire.frames import to_frame
from app.swarm.wire.protocol import (
    NONCE_BYTES,
    OLD_SUBPROTOCOL,
    OPENING_HEADER,
    SOCKET_PATH,
    SUBPROTOCOL,
    AskStats,
    Pub,
    Sample,
    SampleReply,
)
from tests.relay.talking import PATIENCE, Peer, Relay, Town, group, key, running, sealed, town, until

if sys.platform == "win32":
    pytest.skip("ends and stops processes by signals", allow_module_level=True)


@pytest.fixture(scope="module")
def relay() -> Iterator[Relay]:
    with running("--trusted-proxy", "127.0.0.1", "--metrics", "127.0.0.1:0", "--no-checks") as one:
        yield one


@asynccontextmanager
async def unharmed(here: Town, number: int) -> AsyncIterator[Peer]:
    """Two honest clients at `number`'s networks go on publishing, sampling and asking all the while."""
    ann = await here.peer(1000 + number, f"192.0.{number}.1")
    bob = await here.peer(2000 + number, f"198.51.{number}.1")
    rounds = 0

    async def go_on() -> None:
        nonlocal rounds
        while True:
            assert await ann.publish() == "accepted"
            if rounds < 10:
                assert isinstance(await bob.say(Sample(rid=rounds, k=4, max_bytes=100_000)), SampleReply)
            assert (await bob.stats()).peers >= 2
            rounds += 1
            await asyncio.sleep(min(2.0, 0.1 * rounds))

    going = asyncio.create_task(go_on())
    try:
        yield ann

        async def once_more(before: int = rounds) -> bool:
            return rounds > before or going.done()

        await until(once_more)
        assert not going.done(), going.exception()
    finally:
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)


def test_frames_that_break_the_websocket_end_only_their_connection(relay: Relay) -> None:
    async def wire(here: Town) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection after its handshake, to write frames by hand."""
        host, port = relay.http.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            f"GET /v1/ws HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n{OPENING_HEADER}: {'00' * 32}\r\n"
            "X-Forwarded-For: 203.0.113.9\r\n\r\n".encode()
        )
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
        assert b" 101 " in head, head
        await asyncio.wait_for(reader.readexactly(4), PATIENCE)  # the greeting has begun
        return reader, writer

    def frame(opcode: int, content: bytes, *, length: int | None = None) -> bytes:
        size = len(content) if length is None else length
        return bytes([0x80 | opcode, 0x80 | 127]) + struct.pack(">Q", size) + b"\0\0\0\0" + content

    async def story() -> None:
        async with town(relay) as here, unharmed(here, 2):
            for name, (content, code) in {
                "oversize": (frame(1, b" " * 65_537), 1009),
                "oversize in its head alone": (frame(1, b"", length=2**40), 1009),
                "a negative size": (frame(1, b"", length=2**63 + 5), 1009),
                "bad UTF-8": (frame(1, b'{"t":"\xff\xfe"}'), 1007),
                "reserved bits": (b"\xf1\x80\0\0\0\0", 1002),
                "unknown opcode": (frame(3, b"x"), 1002),
                "a long ping": (frame(9, b"x" * 200), 1002),
                "close with bad code": (frame(8, struct.pack(">H", 1)), 1002),
            }.items():
                reader, writer = await wire(here)
                writer.write(content)
                rest = b""
                async with asyncio.timeout(PATIENCE):
                    while not rest.endswith(b"\x88\x02" + struct.pack(">H", code)):
                        chunk = await reader.read(65_536)
                        assert chunk, (name, rest[-20:])
                        rest += chunk
                writer.close()
            for cut in (b"\x81", b"\x81\xfe\x10", frame(1, b"{}", length=1000)):
                _, writer = await wire(here)
                writer.write(cut)
                await writer.drain()
                writer.transport.abort()
            big = await here.peer(3, "203.0.2.1")
            await big.ws.send_str(" " * 65_537)
            assert await big.ended() == 1009

    asyncio.run(story())


def test_frames_before_the_handshake_are_no_way_round(relay: Relay) -> None:
    async def story() -> None:
        host, port = relay.http.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        ask = to_frame(AskStats())
        writer.write(
            f"GET /v1/ws HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n{OPENING_HEADER}: {'00' * 32}\r\n\r\n".encode()
            + bytes([0x81, len(ask)])
            + ask
        )
        answer = await asyncio.wait_for(reader.read(4096), PATIENCE)
        assert answer.startswith(b"HTTP/1.1 400")
        writer.close()

    asyncio.run(story())


def test_visitors_who_stay_take_nobodys_place() -> None:
    """Sixteen networks, as many connections of each as are let in, and all of them ask for figures alone."""

    async def story() -> None:
        with running("--connections", "200", "--trusted-proxy", "127.0.0.1") as relay:
            async with town(relay) as here:
                crowd = []
                for number in range(32):
                    for net in range(16):
                        with contextlib.suppress(aiohttp.WSServerHandshakeError):
                            one = await here.connect(f"203.0.{net}.{number}")
                            crowd.append(one)
                            await one.ws.send_str(to_frame(AskStats()).decode())
                assert len(crowd) > 400, "they are let in, one after the other"
                await asyncio.sleep(1.0)  # all together are let in at a rate, and clients come again
                for number in range(30):
                    assert await (await here.peer(number + 1, f"198.51.{number}.7")).publish() == "accepted"
                for one in crowd:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(0.01):
                            await one.ended()
                left = sum(not one.ws.closed for one in crowd)
                assert left <= 200 // 8

    asyncio.run(story())


def test_what_is_no_http_costs_no_traceback_and_a_compressed_order_is_refused() -> None:
    wrong = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nBad Header: \x00\r\n\r\n",
        b"POST /v1/operator HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
    ]

    async def story(relay: Relay) -> None:
        host, port = relay.http.removeprefix("http://").split(":")
        for _ in range(3):
            for content in wrong:
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + content)
                writer.write_eof()
                with contextlib.suppress(ConnectionError):
                    assert b" 500 " not in await asyncio.wait_for(reader.read(), PATIENCE)
                writer.close()
        async with aiohttp.ClientSession() as http:
            for content in (b"not gzip at all", gzip.compress(b"{}"), gzip.compress(b" " * 10_000_000)):
                headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
                with contextlib.suppress(aiohttp.ClientConnectionError):  # it does not wait for the rest
                    async with http.post(relay.http + "/v1/operator", data=content, headers=headers) as answer:
                        assert answer.status in (400, 415), answer.status
            async with http.get(relay.http + "/healthz") as answer:
                assert answer.status == 200

    with running("--operator", key(1).hex()) as relay:
        asyncio.run(story(relay))
        relay.process.terminate()
        said = relay.process.communicate(timeout=PATIENCE)[1]
    assert "Traceback" not in said and "Error handling" not in said, said[-3000:]


def test_who_leaves_before_the_upgrade_ends_costs_no_traceback() -> None:
    openings = (
        f"{SUBPROTOCOL}\r\n{OPENING_HEADER}: {'00' * NONCE_BYTES}",
        f"{SUBPROTOCOL}\r\n{OPENING_HEADER}: no",
        OLD_SUBPROTOCOL,
    )
    with running() as relay:
        host, port = relay.http.removeprefix("http://").split(":")
        for opening in openings * 40:
            client = socket.create_connection((host, int(port)))
            client.sendall(
                b"GET /v1/ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
                b"Sec-WebSocket-Protocol: " + opening.encode() + b"\r\n\r\n"
            )
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()  # by a reset
        with contextlib.closing(socket.create_connection((host, int(port)))) as client:
            client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert b" 200 " in client.recv(4096)
        relay.process.terminate()
        said = relay.process.communicate(timeout=PATIENCE)[1]
    assert "Traceback" not in said and "Error handling" not in said, said[-3000:]


def test_who_publishes_and_leaves_at_once_costs_no_word_in_the_log(tmp_path: Path) -> None:
    async def story(relay: Relay) -> None:
        async with town(relay) as here:
            for who in range(1, 9):
                peer = await here.peer(who)
                frames = [to_frame(Pub.of(sealed(who, number, peer.hello.swarm))) for number in range(1, 5)]
                transport = peer.ws._writer.transport  # type: ignore[union-attr]
                masked = [b"\x81\xfe" + len(one).to_bytes(2, "big") + bytes(4) + one for one in frames]
                transport.write(b"".join(masked) + b"\x88\x80" + bytes(4))  # a close frame behind them
                await peer.ended()

    with running("--state", str(tmp_path)) as relay:
        asyncio.run(story(relay))
        relay.process.terminate()
        said = relay.process.communicate(timeout=PATIENCE)[1]
    assert "never awaited" not in said and "Traceback" not in said, said[-3000:]


def test_a_thousand_connections_from_one_address(relay: Relay) -> None:
    async def story() -> None:
        async with town(relay) as here, unharmed(here, 7):
            limit = asyncio.Semaphore(100)

            async def one(number: int) -> int:
                async with limit:
                    return await here.turned_away(f"203.0.113.{number % 250}")  # all of one network

            statuses = Counter(await asyncio.gather(*(one(number) for number in range(1000))))
            assert statuses == {0: 32, 503: 968}
            assert await here.turned_away("203.0.114.1") == 0

    asyncio.run(story())


def test_sockets_are_counted_before_a_word_is_spoken() -> None:
    async def story() -> None:
        with running("--connections", "20") as relay:
            host, port = relay.http.removeprefix("http://").split(":")
            silent = [await asyncio.open_connection(host, int(port)) for _ in range(20)]
            reader, _ = await asyncio.open_connection(host, int(port))
            answer = await asyncio.wait_for(reader.read(), PATIENCE)
            assert answer.startswith(b"HTTP/1.1 503 ") and b"Retry-After" in answer
            for _ in range(30):
                reader, writer = await asyncio.open_connection(host, int(port))
                with contextlib.suppress(ConnectionError):
                    await reader.read()
                writer.close()
            for _, writer in silent[:5]:
                writer.close()
            async with town(relay) as here:

                async def room() -> bool:
                    try:
                        return (await here.get("/healthz"))[0] == 200
                    except aiohttp.ClientError:
                        return False

                await until(room)
            relay.process.terminate()
            said = await asyncio.to_thread(relay.process.communicate)
            assert "Traceback" not in said[1], "Each that was refused wrote one"

    asyncio.run(story())


@pytest.mark.parametrize("limits_here", [True, False])
def test_programs_of_this_computer_are_counted_as_one_address(limits_here: bool) -> None:
    """400 silent sockets from many of its addresses; without limits all of them are held."""

    async def story() -> None:
        with running(limits_here=limits_here) as relay:
            host, port = relay.http.removeprefix("http://").split(":")
            silent = [
                await asyncio.open_connection(host, int(port), local_addr=(f"127.0.0.{number % 50 + 1}", 0))
                for number in range(400)
            ]
            reads = [asyncio.create_task(reader.read(9)) for reader, _ in silent]
            refused, held = await asyncio.wait(reads, timeout=3.0)
            assert len(held) == (SOCKETS_PER_ADDRESS if limits_here else 400)
            assert {task.result() for task in refused} <= {b"HTTP/1.1 "}
            for _, writer in silent:
                writer.close()

    asyncio.run(story())


def test_a_connection_with_much_to_say_gives_others_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much has come already: the frames heard in one turn of the loop are counted."""
    turn, heard = 0, Counter[int]()
    receive = Session.receive

    def counted(session: Session, frame: bytes) -> Any:
        heard[turn] += 1
        return receive(session, frame)

    async def count_turns() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    async def story() -> None:
        state = RelayState(bytes(32), "shoal", "1")
        runner = web.AppRunner(Server(state).application())
        await runner.setup()
        await state.open()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        turns = asyncio.create_task(count_turns())
        url = f"{site.name}{SOCKET_PATH}"
        async with aiohttp.ClientSession() as http, http.ws_connect(
            url, protocols=(SUBPROTOCOL,), headers={OPENING_HEADER: "00" * NONCE_BYTES}
        ) as eve:  # fmt: skip
            assert eve._conn is not None and eve._conn.transport is not None
            asked = to_frame(AskStats())
            text = bytes((0x81, 0x80 + len(asked), 0, 0, 0, 0)) + asked
            eve._conn.transport.write(text * 900)
            for _ in range(131):
                await eve.receive(timeout=PATIENCE)
        turns.cancel()
        await runner.cleanup()
        await state.close()

    monkeypatch.setattr(Session, "receive", counted)
    asyncio.run(story())
    assert sum(heard.values()) > 100 and max(heard.values()) <= 34


def test_the_log_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    limit, log = serving._LogLimit(), logging.getLogger("of a relay")
    caplog.handler.addFilter(limit)
    try:
        for _ in range(1000):
            log.warning("A stranger did %s.", "it")
        assert len(caplog.records) <= 110
        limit._lines = Bucket(60, 1)
        log.warning("And now %s.", "this")
    finally:
        caplog.handler.removeFilter(limit)
    assert caplog.messages[-1].startswith("And now this. (") and "lines were left out" in caplog.messages[-1]


async def fill(here: Town, groups: int) -> None:
    """The window with groups of 28 KB, each read from a socket that takes little at a time."""
    for who in range(400, 400 + groups // 50):
        one = await here.peer(who, f"203.2.{who % 250}.1")
        for number in range(50):
            made = group(number)
            long = (*made.completions_G, *("x" * 4000 for _ in range(6)))
            made = msgspec.structs.replace(made, completions_G=long, finished_G=(True,) * 8)
            envelope = await asyncio.to_thread(sealed, who, number + 1, made=made, rewards=(1, *[0] * 7))
            assert await one.publish(envelope) == "accepted"


async def gluttons(relay: Relay, here: Town, number: int, first: int) -> list[Peer]:
    """Clients who ask for all they may and read nothing of it, through a narrow socket."""
    found = []
    for who in range(first, first + number):
        one = await here.peer(who, f"203.{first // 100}.{who % 100}.1")
        for rid in range(10):
            await one.ws.send_str(to_frame(Sample(rid=rid, k=64)).decode())
        found.append(one)
    return found


def narrow(where: Any) -> socket.socket:
    """A client's socket that takes a few kilobytes and then waits to be read from."""
    one = socket.socket(where[0], where[1], where[2])
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return one


@pytest.mark.skipif(sys.platform != "linux", reason="reads memory from /proc")
def test_who_does_not_read_costs_little_and_holds_up_nobody(relay: Relay) -> None:
    async def story() -> None:
        async with town(relay) as here, unharmed(here, 8), town(relay, narrow) as there:
            await fill(here, 200)
            before = relay.rss()
            slow = await gluttons(relay, there, 16, 500)
            await asyncio.sleep(2.0)
            assert relay.rss() - before < len(slow) * 2 * 2**20  # each of them asked for 5 MB

    asyncio.run(story())


@pytest.mark.long
def test_who_says_nothing_or_takes_nothing_is_let_go(relay: Relay) -> None:
    """Strangers who do not sign in, heads of requests that never end, readers who do not read: all gone in
    time, while those who are here for the figures may stay."""

    async def story() -> None:
        async with town(relay) as here, unharmed(here, 9), town(relay, narrow) as there:
            await fill(here, 100)
            await gluttons(relay, there, 8, 600)
            strangers = [await here.connect(f"203.3.{number}.1") for number in range(20)]
            reader_of_figures = await here.connect("203.3.99.1")
            await reader_of_figures.stats()
            host, port = relay.http.removeprefix("http://").split(":")
            lorises = [await asyncio.open_connection(host, int(port)) for _ in range(50)]
            for place, (_, writer) in enumerate(lorises):
                writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: " if place % 2 else b"")

            async def drip() -> None:
                while True:
                    await asyncio.sleep(1.0)
                    for _, writer in lorises:
                        writer.write(b"a")

            dripping = asyncio.create_task(drip())
            assert [await one.ended() for one in strangers] == [1008] * 20
            for reader, _ in lorises:
                with contextlib.suppress(ConnectionError):
                    await asyncio.wait_for(reader.read(), PATIENCE)
            dripping.cancel()

            async def dropped() -> bool:
                _, text = await here.get(relay.first["metrics"])
                return "relay_outbound_dropped_total 8.0" in text and 'reason="no-sign-in"} 20.0' in text

            await until(dropped)
            assert (await reader_of_figures.stats()).peers >= 2

    asyncio.run(story())
