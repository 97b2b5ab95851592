"""Somebody in the relay's place: real relays, real clients, and a real machine between them.

`Middle` is that machine. It passes on every byte of the handshake and of the sign-in, and then reads, speaks,
changes, repeats and leaves out as it likes.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType, web

from app.swarm.invite.invite import Invite
from app.swarm.invite.private import PrivateSwarm
from app.swarm.wire.body import Body, seal
from app.swarm.wire.frames import decode_relay_frame, to_frame
from app.swarm.wire.limits import Code, Refused
from app.swarm.wire.protocol import (
    OLD_SUBPROTOCOL,
    OPENING_HEADER,
    SOCKET_PATH,
    SUBPROTOCOL,
    Err,
    Hello,
    Pub,
    RelayNotice,
    Sample,
)
from app.swarm.wire.signin import check_hello
from tests.swarm.relays import ANN, BOB, PATIENCE_S, Relay, group, running, until

if sys.platform == "win32":
    pytest.skip("kills processes hard", allow_module_level=True)

CODE = PrivateSwarm(bytes(range(32)))


class Middle:
    """Passes everything on. `towards` it sees what the node says, `back` what the relay says; each gives the
    frames that go on instead."""

    def __init__(self, relay: str) -> None:
        self._relay = relay
        self.towards: Callable[[aiohttp.WSMessage], list[bytes | str]] = lambda one: [one.data]
        self.back = self.towards
        self.said: list[bytes | str] = []
        self.heard: list[bytes | str] = []
        self.node: web.WebSocketResponse
        self.far: aiohttp.ClientWebSocketResponse[bool]

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        offered = tuple(word.strip() for word in request.headers["Sec-WebSocket-Protocol"].split(","))
        headers = {OPENING_HEADER: request.headers[OPENING_HEADER]}
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(self._relay, protocols=offered, headers=headers, max_msg_size=1 << 20) as far,
        ):
            self.node = node = web.WebSocketResponse(
                protocols=(SUBPROTOCOL,), compress=False, max_msg_size=1 << 20
            )
            self.far = far
            await node.prepare(request)
            ways = [
                asyncio.create_task(self._pass(node, far, self.said, lambda one: self.towards(one))),
                asyncio.create_task(self._pass(far, node, self.heard, lambda one: self.back(one))),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            await node.close()
        return node

    async def _pass(self, here: Any, there: Any, log: list[bytes | str], turn: Any) -> None:
        async for message in here:
            log.append(message.data)
            for data in turn(message):
                await (there.send_str(data) if isinstance(data, str) else there.send_bytes(data))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        application = web.Application()
        application.add_routes([web.get(SOCKET_PATH, self._serve)])
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"ws://127.0.0.1:{runner.addresses[0][1]}{SOCKET_PATH}"
        finally:
            await runner.cleanup()


@pytest.fixture
def private_relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    monkeypatch.setenv("SHOAL_PRIVATE", CODE.token)
    one = Relay("--private", "--state", str(tmp_path / "private"))
    one.start()
    try:
        yield one
    finally:
        one.kill()


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    one = Relay("--state", str(tmp_path / "relay"))
    one.start()
    try:
        yield one
    finally:
        one.kill()


def member(url: str, relay: str | None = None) -> Invite:
    return Invite(url=url, swarm=CODE.swarm, relay=relay, token=CODE.token)


def story_with(middle: Middle, tell: Callable[[str], Any]) -> None:
    async def story() -> None:
        async with asyncio.timeout(2 * PATIENCE_S), middle.open() as url:
            await tell(url)

    asyncio.run(story())


def test_what_a_member_says_and_hears_cannot_be_read(private_relay: Relay, tmp_path: Path) -> None:
    middle = Middle(private_relay.url)

    async def tell(url: str) -> None:
        async with (
            running(tmp_path, [member(url)]) as (ann, _),
            running(tmp_path, [member(private_relay.url)], BOB) as (bob, _),
        ):
            assert ann.publish(group(), (1, 0)) and bob.publish(group(1), (1, 0))
            await until(lambda: ann.status.acknowledged == 1 and bob.status.acknowledged == 1)
            batch = await ann.sample(8)
            assert batch is not None and len(batch.items) == 1
        everything = b"".join(
            one if isinstance(one, bytes) else one.encode() for one in middle.said + middle.heard
        )
        assert len(middle.said) >= 4 and all(isinstance(one, bytes) for one in middle.said + middle.heard)
        for word in (b'{"t"', b"hello", b"gcd", b"so it is", ANN.key.hex().encode(), CODE.swarm.encode()):
            assert word not in everything

    story_with(middle, tell)


def spoken(kind: str) -> list[bytes | str]:
    """What an outsider says to the relay in a member's session."""
    body = Body.of(group(7), (1, 0), CODE.swarm, 1, 1_800_000_000_000)
    pub = to_frame(Pub.of(seal(body, secrets.token_bytes(32))))
    sample = to_frame(Sample(rid=1, k=8))
    return {"text": [pub.decode(), sample.decode()], "bytes": [pub, sample]}[kind]


@pytest.mark.parametrize("kind", ["text", "bytes", "again", "changed", "left out"])
def test_nobody_speaks_in_a_members_session(private_relay: Relay, tmp_path: Path, kind: str) -> None:
    """The sign-in is passed on as it is; what comes after it ends the connection, and nothing of it is done."""
    middle = Middle(private_relay.url)
    frames = 0

    def turn(message: aiohttp.WSMessage) -> list[bytes | str]:
        nonlocal frames
        frames += 1
        if frames != 2:  # the first is the sign-in
            return [message.data]
        match kind:
            case "again":
                return [message.data, message.data]
            case "changed":
                return [message.data[:-1] + bytes([message.data[-1] ^ 1])]
            case "left out":
                return []
        return spoken(kind)

    middle.towards = turn

    async def tell(url: str) -> None:
        async with running(tmp_path, [member(url)]) as (ann, links):
            await until(lambda: links and links[0].state == "connected", "the sign-in was passed on")
            assert ann.publish(group(), (1, 0))
            await until(lambda: middle.far.closed, "the relay ends it")
            assert middle.far.close_code == 1008
            heard = len(middle.heard)
            await until(lambda: ann.status.acknowledged == 1, "on a line of its own nothing is lost")
            assert heard <= 4 and not any(isinstance(one, str) for one in middle.heard)
            async with running(tmp_path, [member(private_relay.url)], BOB) as (bob, _):
                await until(lambda: bob.status.stored is not None)
                assert (bob.status.stored, ann.status.refused) == (1, 0), "nothing of an outsider's is stored"

    story_with(middle, tell)


@pytest.mark.parametrize("kind", ["text", "bytes", "again", "changed"])
def test_nobody_speaks_in_the_relays_place(private_relay: Relay, tmp_path: Path, kind: str) -> None:
    middle = Middle(private_relay.url)
    frames = 0
    notice = to_frame(RelayNotice(msg="Send your words to evil.example"))

    def turn(message: aiohttp.WSMessage) -> list[bytes | str]:
        nonlocal frames
        frames += 1
        if frames != 3:  # the first two are hello and welcome
            return [message.data]
        return {
            "text": [notice.decode()],
            "bytes": [notice],
            "again": [message.data, message.data],
            "changed": [bytes([message.data[0] ^ 1]) + message.data[1:]],
        }[kind]

    middle.back = turn

    async def tell(url: str) -> None:
        async with running(tmp_path, [member(url)]) as (ann, links):
            await until(lambda: any(link.state == "lost" for link in links))
            lost = next(link for link in links if link.state == "lost")
            assert "meddled" in lost.sentence and "evil" not in ann.status.sentence

    story_with(middle, tell)


def test_whoever_does_not_know_the_words_is_no_relay_of_the_swarm(relay: Relay, tmp_path: Path) -> None:
    """An open relay in the private one's place, and a program that says hello in the open or makes it up."""

    async def tell() -> None:
        async with running(tmp_path / "open", [member(relay.url)]) as (_, links):
            await until(lambda: links)
            assert links[0].state == "refused" and "no private swarm" in links[0].sentence
        middle = Middle(relay.url)
        async with middle.open() as url:
            for hello in (to_frame(RelayNotice(msg="hello")).decode(), secrets.token_bytes(500)):
                middle.back = lambda _, hello=hello: [hello]  # type: ignore[misc]
                home = tmp_path / secrets.token_hex(4)
                async with running(home, [member(url)]) as (_, links):
                    await until(lambda: links)
                    assert "doesn't prove that it knows this swarm's six words" in links[0].sentence
            assert not middle.said, "and nothing was said to it"

    asyncio.run(tell())


def test_a_member_cannot_be_another_members_relay(private_relay: Relay, tmp_path: Path) -> None:
    """Who knows the words can open a line, and still is not the relay that was met before: its hello is signed
    for one line."""
    forged: list[Refused] = []

    async def tell() -> None:
        from app.swarm.client.connection import connect

        theirs = await connect(private_relay.url, private=CODE)
        hello = await theirs.receive()
        assert isinstance(hello, Hello)
        mine = await connect(private_relay.url, private=CODE)
        await mine.receive()
        check_hello(hello, theirs.opening)
        try:
            check_hello(hello, mine.opening)
        except Refused as refused:
            forged.append(refused)
        await theirs.close()
        await mine.close()

    asyncio.run(tell())
    assert forged


def test_a_hello_that_was_made_for_another_connection_is_not_believed(relay: Relay, tmp_path: Path) -> None:
    """A program at the relay's address says the very hello that the relay said to somebody else."""
    heard: list[str] = []

    async def tell() -> None:
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(relay.url, protocols=(SUBPROTOCOL,), headers={OPENING_HEADER: "00" * 32}) as ws,
        ):
            hello = await ws.receive_str(timeout=PATIENCE_S)
            middle = Middle(relay.url)
            middle.back = lambda _: [hello]
            async with middle.open() as url, running(tmp_path, [url]) as (_, links):
                await until(lambda: links)
                assert "doesn't prove that it is the relay" in links[0].sentence
                heard.extend(str(one) for one in middle.said)
        assert not heard, "no signature for it"

    asyncio.run(tell())


def test_who_speaks_an_older_version_is_told_what_to_do(
    relay: Relay, private_relay: Relay, tmp_path: Path
) -> None:
    async def old_client(url: str) -> Err:
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(url, protocols=(OLD_SUBPROTOCOL,)) as ws,
        ):
            said = decode_relay_frame((await ws.receive_str(timeout=PATIENCE_S)).encode())
            assert isinstance(said, Err) and (await ws.receive(timeout=PATIENCE_S)).type is WSMsgType.CLOSE
            return said

    async def old_relay(request: web.Request) -> web.StreamResponse:
        ws = web.WebSocketResponse(protocols=(OLD_SUBPROTOCOL,), compress=False)
        await ws.prepare(request)
        with contextlib.suppress(Exception):
            await ws.receive(timeout=PATIENCE_S)
        return ws

    async def tell() -> None:
        for one in (relay, private_relay):
            said = await old_client(one.url)
            assert (said.code, said.msg) == (
                Code.UNSUPPORTED, "This relay speaks version 1.1 of the protocol: update Shoal."
            )  # fmt: skip
        application = web.Application()
        application.add_routes([web.get(SOCKET_PATH, old_relay)])
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"ws://127.0.0.1:{runner.addresses[0][1]}{SOCKET_PATH}"
        async with running(tmp_path, [url]) as (_, links):
            await until(lambda: links)
            assert "older Shoal" in links[0].sentence and "updated" in links[0].sentence
        await runner.cleanup()

    asyncio.run(tell())
